import type { SequenceKey } from './sequence-line.js';

/** Keys that are remembered; beyond, the oldest are forgotten. */
const MAX_LOST = 10_000;

/**
 * Keys of sequences that ended with the instance that held their state: a client that continues one gets an
 * error.
 */
export class LostSequences {
  readonly #keys = new Set<SequenceKey>();

  add(key: SequenceKey): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    if (this.#keys.size <= MAX_LOST) return;
    const [oldest] = this.#keys;
    this.#keys.delete(oldest!);
  }

  has(key: SequenceKey): boolean {
    return this.#keys.has(key);
  }

  /** A sequence of this key begins. */
  delete(key: SequenceKey): void {
    this.#keys.delete(key);
  }
}
