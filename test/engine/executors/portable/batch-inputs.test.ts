import { describe, expect, it } from 'vitest';
import {
  forEachPromptRow,
  writeEmbeddingRows,
  writePromptRows,
} from '../../../../engine/executors/portable/embedding-rows.js';
import { type RopeChoice, writeRopeAngles } from '../../../../engine/executors/portable/rope-angles.js';
import type { PackedBatch } from '../../../../engine/packed-call/packed-batch.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork } from '../../../../tools/support/tiny-network.js';
import { splitPlan } from '../../../support/plan-parts.js';

/** Two sequences with rows of frequencies of their own: three tokens from place 4 on, and one at place 9. */
function batch(changes: Partial<PackedBatch> = {}): PackedBatch {
  return {
    ...makeStepBatch(
      [
        { tokens: [0, 1, 2, 3, 4, 5, 6], cached: 4, blocks: [0], ropeRow: 1 },
        { tokens: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], cached: 9, blocks: [1] },
      ],
      { tokensPerBlock: 16, inverseFrequencies: Float32Array.of(1, 0.5, 0.25, 0.125) },
    ),
    ropeScales: Float32Array.of(1, 3),
    ...changes,
  };
}

function anglesOf(packed: PackedBatch, choice: RopeChoice) {
  const angles = { cosine: new Float32Array(8), sine: new Float32Array(8) };
  writeRopeAngles(packed, choice, angles);
  return angles;
}

/** Cosines of position * frequency for each pair, times `scale`, in float32. */
const cosines = (pairs: [number, number][], scale = 1) =>
  pairs.map(([position, frequency]) => Math.fround(Math.fround(Math.cos(position * frequency)) * scale));

describe('RoPE angles', () => {
  it('are those of each row of frequencies, with its factor', () => {
    const { cosine, sine } = anglesOf(batch(), { rotaryDim: 4 });
    const first: [number, number][] = [4, 5, 6].flatMap((p): [number, number][] => [
      [p, 0.25],
      [p, 0.125],
    ]);
    expect([...cosine]).toEqual([
      ...cosines(first, 3),
      ...cosines([
        [9, 1],
        [9, 0.5],
      ]),
    ]);
    expect(sine[7]).toBe(Math.fround(Math.sin(4.5)));
  });

  it('follow the positions of the batch, not the places in the cache', () => {
    const { cosine } = anglesOf(batch({ positions: Int32Array.of(40, 41, 42, 0) }), { rotaryDim: 4 });
    expect(cosine[0]).toBe(cosines([[40, 0.25]], 3)[0]);
    expect(cosine[6]).toBe(1);
  });

  it("are those of the plan's own table, without a factor", () => {
    const { cosine } = anglesOf(batch(), { rotaryDim: 4, table: [0.1, 2] });
    expect(cosine[0]).toBe(Math.fround(Math.cos(Math.fround(4 * Math.fround(0.1)))));
    expect(cosine[7]).toBe(Math.fround(Math.cos(18)));
  });

  it('end at the last position', () => {
    const { cosine } = anglesOf(batch(), { rotaryDim: 4, lastPosition: 5 });
    expect([...cosine.subarray(2, 6)]).toEqual(
      cosines(
        [
          [5, 0.25],
          [5, 0.125],
          [5, 0.25],
          [5, 0.125],
        ],
        3,
      ),
    );
    expect(cosine[6]).toBe(cosines([[5, 1]])[0]);
  });
});

describe('embedding rows', () => {
  const shape = { vocabSize: 10, width: 2 };
  const table = Float32Array.from({ length: 20 }, (_, i) => i / 10);
  const prompts = batch({
    tokenIds: Int32Array.of(4, 11, 10, 0),
    promptTables: [{ first: 1, count: 2, table: Float32Array.of(7, 8, 9, 10) }],
  });

  it("are scaled; a prompt's own are not", () => {
    const output = new Float32Array(8).fill(-1);
    writeEmbeddingRows(prompts, table, { ...shape, scale: 0.1 }, output);
    const scaled = (value: number) => Math.fround(Math.fround(value) * Math.fround(0.1));
    expect([...output]).toEqual([scaled(0.8), scaled(0.9), -1, -1, -1, -1, 0, scaled(0.1)]);
    writePromptRows(prompts, { ...shape, stride: 2 }, output);
    expect([...output.subarray(2, 6)]).toEqual([9, 10, 7, 8]);
  });

  it('of prompts are named one by one; tokens of the vocabulary between them are not', () => {
    const rows: [number, number[]][] = [];
    const mixed = { ...prompts, tokenIds: Int32Array.of(4, 11, 3, 0) };
    forEachPromptRow(mixed, { ...shape, stride: 2, first: 0 }, (t, row) => rows.push([t, [...row]]));
    expect(rows).toEqual([[1, [9, 10]]]);
  });
});

describe('a plan', () => {
  it('falls apart where rows are selected', () => {
    const { plan, remove } = makeTinyNetwork();
    remove();
    const { forward, selected, head } = splitPlan(plan);
    expect(forward.at(-1)!.op).toBe('linear');
    expect(forward.length + 1 + head.length).toBe(plan.ops.length);
    expect(head.map(({ op }) => op)).toEqual(['rmsNorm', 'linear']);
    expect(plan.values[selected.input]!.rows).toBe('tokens');
    expect(plan.values[selected.output]!.rows).toBe('logits');
  });

  it('without such rows is refused', () => {
    const { plan, remove } = makeTinyNetwork();
    remove();
    expect(() => splitPlan({ ...plan, ops: plan.ops.slice(0, 2) })).toThrow(
      'The network tiny selects no rows of tokens, so it has no head to run apart.',
    );
  });
});
