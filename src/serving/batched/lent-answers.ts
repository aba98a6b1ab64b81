import { BufferPool } from '../../../base/buffer-pool.js';

/** Answers of a batch that take less are not worth the way back. */
const MIN_BYTES = 16 * 1024;

const NOT_LENT = { lease: () => undefined, end: () => {} };

/**
 * Memory for the answers of batches: a batch takes it to the instance's thread, the answers bring it back,
 * and once they are no longer read it is free for another batch. So answers of megabytes are no garbage.
 *
 *   memoryFor -> batch -> answers -> share -> lease  for each response --release--.
 *       ^                                                                         |
 *       '---------------------- when all leases are released ---------------------'
 */
export class LentAnswers {
  readonly #pool: BufferPool | null;
  /** Bytes of answers for each row of the latest batch. */
  #bytesPerRow = 0;

  /** @param maxKept batches that may be under way @param isLent false: no memory is lent, since instances are processes or answer bit by bit */
  constructor(maxKept: number, isLent: boolean) {
    this.#pool = isLent ? new BufferPool({ maxKept }) : null;
  }

  /** Sets how many batches may be under way. */
  keep(maxKept: number): void {
    this.#pool?.keep(maxKept);
  }

  /** Memory in which the answers of `rows` rows probably fit; null: the worker makes its own. */
  memoryFor(rows: number): ArrayBuffer | null {
    const bytes = Math.ceil(this.#bytesPerRow * rows);
    return this.#pool === null || bytes < MIN_BYTES ? null : this.#pool.take(bytes);
  }

  noteSize(bytes: number, rows: number): void {
    this.#bytesPerRow = bytes / Math.max(1, rows);
  }

  /**
   * Each response of a message leases its bytes, if they are worth it; `end` is called after the last one.
   */
  share({ buffer }: Uint8Array): { lease: () => (() => void) | undefined; end: () => void } {
    if (this.#pool === null || buffer.byteLength < MIN_BYTES) return NOT_LENT;
    let left = 1;
    const giveUp = () => {
      left--;
      if (left === 0) this.giveBack(buffer as ArrayBuffer);
    };
    const lease = () => {
      left++;
      let isHeld = true;
      return () => {
        if (isHeld) giveUp();
        isHeld = false;
      };
    };
    return { lease, end: giveUp };
  }

  giveBack(memory: ArrayBuffer | null): void {
    if (memory !== null) this.#pool?.give(memory);
  }
}
