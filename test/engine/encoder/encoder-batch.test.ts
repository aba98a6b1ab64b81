import { describe, expect, it } from 'vitest';
import { RopeTable } from '../../../engine/batch/rope-table.js';
import { EncoderBatch, encoderBlocks } from '../../../engine/encoder/encoder-batch.js';
import type { EncoderConfig } from '../../../models/encoder-config.js';

/** No layers after the pooling, and no prompts. */
const PLAIN = { layers: [], prompts: {}, defaultPrompt: null };
const CONFIG: EncoderConfig = {
  bothWays: true,
  tokenTypes: 2,
  positionRows: 66,
  firstPosition: 2,
  head: { kind: 'embedding', pooling: 'mean', normalize: true, matryoshka: null, ...PLAIN },
};
const noRope = () => new RopeTable({ inverseFrequencies: new Float32Array(0), scale: 1 }, null, 4);
const LIMITS = { maxNumTokens: 128, maxNumSequences: 4, maxSeqLen: 64 };

const sequence = (length: number, types = false) => ({
  tokenIds: Int32Array.from({ length }, (_, i) => 10 * length + i),
  tokenTypes: types ? new Int32Array(length).fill(1) : null,
});

describe('a batch of an encoder', () => {
  it('packs ragged sequences, each from a block of its own', () => {
    const batch = new EncoderBatch(LIMITS, CONFIG, noRope());
    batch.pack([sequence(3), sequence(40, true)]);
    expect([batch.numTokens, batch.numSequences, batch.numLogitRows, batch.maxBlocks]).toEqual([43, 2, 2, 2]);
    expect([...batch.queryStart.subarray(0, 3)]).toEqual([0, 3, 43]);
    expect([...batch.contextLength.subarray(0, 2)]).toEqual([3, 40]);
    expect([...batch.positions.subarray(0, 6)]).toEqual([2, 3, 4, 2, 3, 4]);
    expect([...batch.slots.subarray(0, 5)]).toEqual([0, 1, 2, 32, 33]);
    expect([...batch.blockTables.subarray(0, 4)]).toEqual([0, 0, 1, 2]);
    expect([...batch.logitRows.subarray(0, 2)]).toEqual([0, 3]);
    expect([...batch.newBlocks.subarray(0, batch.numNewBlocks)]).toEqual([0, 2]);
    expect([...batch.tokenTypes.subarray(0, 6)]).toEqual([0, 0, 0, 1, 1, 1]);
    batch.pack([sequence(4)]);
    expect([...batch.tokenTypes.subarray(0, 4)]).toEqual([0, 0, 0, 0]);
    expect(batch.numTokens).toBe(4);
  });

  it('takes the last row of each sequence where that is the pooling', () => {
    const head = { kind: 'embedding', pooling: 'last', normalize: true, matryoshka: null, ...PLAIN } as const;
    const batch = new EncoderBatch(LIMITS, { ...CONFIG, head }, noRope());
    batch.pack([sequence(3), sequence(40)]);
    expect([...batch.logitRows.subarray(0, 2)]).toEqual([2, 42]);
  });

  it('has blocks for any sequences within the limits', () => {
    for (const lengths of [
      [1, 1, 1, 1],
      [33, 33, 33, 29],
      [64, 64],
      [32, 32, 32, 32],
      [1, 63, 64],
    ]) {
      const batch = new EncoderBatch(LIMITS, CONFIG, noRope());
      batch.pack(lengths.map((length) => sequence(length)));
      expect(Math.max(...batch.blockTables)).toBeLessThan(encoderBlocks(LIMITS));
    }
  });
});
