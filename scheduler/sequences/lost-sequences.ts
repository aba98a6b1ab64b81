import type { SequenceId } from './sequence-line.js';

/** Ids that are remembered; beyond, the oldest are forgotten. */
const MOST_LOST = 10_000;

/** Ids of sequences that ended with the instance that held their state: whoever goes on with one of them is told so. */
export class LostSequences {
  readonly #ids = new Set<SequenceId>();

  add(id: SequenceId): void {
    this.#ids.delete(id);
    this.#ids.add(id);
    if (this.#ids.size <= MOST_LOST) return;
    const [oldest] = this.#ids;
    this.#ids.delete(oldest!);
  }

  has(id: SequenceId): boolean {
    return this.#ids.has(id);
  }

  /** A sequence of this id begins. */
  delete(id: SequenceId): void {
    this.#ids.delete(id);
  }
}
