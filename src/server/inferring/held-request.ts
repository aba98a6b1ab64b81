import { onAbort } from '../../../base/on-abort.js';
import type { RequestMemory } from '../web/memory/request-memory.js';

/** Where a request of a stream comes from, and what its end calls. */
export interface HeldOptions {
  /** Memory of the request, which the last answer gives back. */
  memory: RequestMemory;
  /** Aborted when the client has left. */
  signal: AbortSignal;
  beginWork(): () => void;
  onOver(): void;
}

/** What a request of a stream holds until its last answer is out, whatever the protocol. */
export abstract class HeldRequest {
  /** Work on its answers, which is done in order. */
  tail: Promise<void> = Promise.resolve();
  protected readonly cancelled = new AbortController();
  protected readonly memory: RequestMemory;
  readonly #leave: () => void;
  readonly #endWork: () => void;
  readonly #onOver: () => void;
  #isOver = false;

  constructor({ memory, signal, beginWork, onOver }: HeldOptions) {
    this.memory = memory;
    this.#onOver = onOver;
    this.#endWork = beginWork();
    this.#leave = onAbort(signal, () => this.cancel());
  }

  /** Gives back what the protocol holds. */
  protected abstract release(): void;

  holdAnswer(bytes: number): void {
    // In addition to what is held, which a model may have added to.
    this.memory.holdBody(this.memory.bytes + bytes);
  }

  freeAnswer(bytes: number): void {
    if (!this.#isOver) this.memory.holdBody(this.memory.bytes - bytes);
  }

  cancel(): void {
    this.cancelled.abort(new DOMException('The client has left.', 'AbortError'));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#leave();
    this.release();
    this.memory.release();
    this.#endWork();
    this.#onOver();
  }
}
