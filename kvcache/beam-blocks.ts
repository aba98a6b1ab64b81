/**
 * What the further beams of a sequence hold for themselves. The first beam's blocks are the sequence's table; those that
 * are full of prompt are in it once, for all beams. From there on, the half-filled last block of the prompt included,
 * each beam has its own.
 *
 *   tokensPerBlock 4, prompt 10, 13 tokens, 3 beams
 *
 *     table, beam 0   [ 7 | 2 | 5 | 9 ]       7 and 2 are full of prompt: shared
 *     beam 1                  [ 4 | 8 ]
 *     beam 2                  [ 1 | 3 ]       2 + 3 * 2 = 8 blocks
 */
export class BeamBlocks {
  /** Blocks of the table that all beams share. */
  readonly numShared: number;
  readonly #branches: number[][];

  constructor(numShared: number, beamWidth: number) {
    this.numShared = numShared;
    this.#branches = Array.from({ length: beamWidth - 1 }, () => []);
  }

  get beamWidth(): number {
    return this.#branches.length + 1;
  }

  /** Held beside the table. */
  get numBlocks(): number {
    return this.#branches.length * (this.#branches[0]?.length ?? 0);
  }

  /** Those beside the table when that has `tableBlocks`. */
  numBlocksBeside(tableBlocks: number): number {
    return this.#branches.length * Math.max(0, tableBlocks - this.numShared);
  }

  /** The blocks of each beam behind the first. */
  get branches(): readonly (readonly number[])[] {
    return this.#branches;
  }

  grow(tableBlocks: number, take: () => number): void {
    for (const branch of this.#branches) {
      while (this.numShared + branch.length < tableBlocks) branch.push(take());
    }
  }

  /** To 0 for all of them. */
  shrink(tableBlocks: number, release: (block: number) => void): void {
    for (const branch of this.#branches) {
      while (branch.length > 0 && this.numShared + branch.length > tableBlocks) release(branch.pop()!);
    }
  }
}
