import { InferError } from '../../../callbacks/infer/infer-error.js';

interface Command {
  /** What the command brings about; two with the same wish are one. Null: the command is like no other. */
  wish: string | null;
  work: () => Promise<void>;
  promise: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

/** Commands of all models that may wait. */
const MAX_WAITING = 1000;

/**
 * All changes of a model repository, one after the other for each model: commands of different models run
 * concurrently. A command that wishes what the last waiting command of its model wishes shares that one's
 * end, so that the same command any number of times is one, and contradictory commands run in the order in
 * which they came.
 *
 *   simple   | load (runs) | unload | load <- load <- load        three callers share the last one
 *   resnet   | unload (runs)
 */
export class CommandQueue {
  /** Commands of each model, the running one first. */
  readonly #chains = new Map<string, Command[]>();
  #waiting = 0;
  #isClosed = false;

  /** Commands that have not ended. */
  get size(): number {
    let size = 0;
    for (const chain of this.#chains.values()) size += chain.length;
    return size;
  }

  /** A command of the model has not ended. */
  has(model: string): boolean {
    return this.#chains.has(model);
  }

  /**
   * Runs `work` once every earlier command of the model has ended. @throws InferError unavailable at once, where too many wait or
   * the queue is closed; rejects with what `work` throws.
   */
  run(model: string, wish: string | null, work: () => Promise<void>): Promise<void> {
    if (this.#isClosed) throw new InferError('The server is shutting down.', 'unavailable');
    const chain = this.#chains.get(model) ?? [];
    const last = chain.length > 1 ? chain.at(-1)! : null;
    if (wish !== null && last?.wish === wish) return last.promise;
    if (this.#waiting >= MAX_WAITING) {
      throw new InferError(
        `${this.#waiting} changes of models wait already; at most ${MAX_WAITING} may.`,
        'unavailable',
      );
    }
    const command = commandOf(wish, work);
    this.#waiting++;
    chain.push(command);
    if (chain.length === 1) {
      this.#chains.set(model, chain);
      void this.#drain(model, chain);
    }
    return command.promise;
  }

  /** Takes no more commands, refuses those that wait, and resolves when the running ones have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = [...this.#chains.values()].map((chain) => {
      for (const command of chain.splice(1)) {
        this.#waiting--;
        command.reject(new InferError('The server is shutting down.', 'unavailable'));
      }
      return chain[0]!.promise;
    });
    await Promise.allSettled(running);
  }

  async #drain(model: string, chain: Command[]): Promise<void> {
    for (let command = chain[0]; command !== undefined; command = chain[0]) {
      this.#waiting--;
      try {
        await command.work();
        command.resolve();
      } catch (error) {
        command.reject(error);
      }
      chain.shift();
    }
    this.#chains.delete(model);
  }
}

function commandOf(wish: string | null, work: () => Promise<void>): Command {
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<void>((onEnd, onError) => {
    resolve = onEnd;
    reject = onError;
  });
  promise.catch(() => {}); // its callers receive the failure; it may have none
  return { wish, work, promise, resolve, reject };
}
