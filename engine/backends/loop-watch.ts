import type { MessagePort } from 'node:worker_threads';
import { BackendError } from './backend.js';

/** Milliseconds that a promise may still take when nothing keeps the event loop alive: a timer or a thread that does not may settle it. */
export const GRACE_MS = 5000;

interface Wait {
  fail(): void;
  hadGrace: boolean;
}

/**
 * Notices that code waits for something that will never come: its promise is not settled, and nothing is left in the thread's event
 * loop that could do it. The worker's own port is no such thing while code is awaited, unless an answer of the host is under way.
 *
 *   code is awaited, port does not count ... loop empty -> 5 s more -> loop empty -> the wait fails, the worker goes on
 */
export class LoopWatch {
  readonly #port: Pick<MessagePort, 'ref' | 'unref'>;
  readonly #waits = new Set<Wait>();
  #isServing = false;
  #numHeld = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param loop says when the event loop is empty */
  constructor(port: Pick<MessagePort, 'ref' | 'unref'>, loop: Pick<NodeJS.Process, 'on'> = process) {
    this.#port = port;
    loop.on('beforeExit', () => this.#noteEmpty());
  }

  /** From now on the port has a listener, and keeps the thread alive while no code is awaited. */
  noteServing(): void {
    this.#isServing = true;
    this.#update();
  }

  /** The host owes an answer that code may wait for, until `release` is called as many times. */
  hold(): void {
    this.#numHeld++;
    this.#update();
  }

  release(): void {
    this.#numHeld--;
    this.#update();
  }

  /** What the code's promise resolves with. @param what never ends then, as a sentence begins @throws BackendError, or what the code throws */
  async settled<T>(what: string, run: () => T | Promise<T>): Promise<T> {
    let wait: Wait | undefined;
    const stuck = new Promise<never>((_, reject) => {
      const message = `${what} never finished: its promise was not settled, and nothing was left to wait for`;
      wait = { fail: () => reject(new BackendError(message)), hadGrace: false };
      this.#waits.add(wait);
    });
    this.#update();
    try {
      return await Promise.race([run(), stuck]);
    } finally {
      this.#waits.delete(wait!);
      this.#update();
    }
  }

  #update(): void {
    if (this.#waits.size === 0 && this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
    if (!this.#isServing) return;
    if (this.#waits.size === 0 || this.#numHeld > 0) this.#port.ref();
    else this.#port.unref();
  }

  #noteEmpty(): void {
    for (const wait of this.#waits) {
      if (wait.hadGrace) wait.fail();
      else this.#timer ??= setTimeout(() => this.#noteGrace(), GRACE_MS);
    }
  }

  #noteGrace(): void {
    this.#timer = null;
    for (const wait of this.#waits) wait.hadGrace = true;
  }
}
