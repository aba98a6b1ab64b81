import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { KvDtype } from '../../../../kvcache/cache-shape.js';
import { Random } from '../../../../tools/support/random.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork, type TinyShape } from '../../../../tools/support/tiny-network.js';
import { bestInstructionSet, executorOptions, instructionSets } from '../../../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../../../support/paged-sequences.js';

// Two sequences are longer than one split of the cache, so that splits and merges are part of what must not matter.
const LENGTHS = [40, 3, 17, 540, 90, 1, 66, 530];
const POOL_BLOCKS = 512;

type Precision = 'f32' | 'bf16' | 'int8' | 'int4' | 'mixed';
const FORMATS: { precision: Precision; kvDtype: KvDtype }[] = [
  { precision: 'f32', kvDtype: 'f32' },
  { precision: 'bf16', kvDtype: 'bf16' },
  { precision: 'int8', kvDtype: 'bf16' },
  { precision: 'int4', kvDtype: 'bf16' },
  { precision: 'mixed', kvDtype: 'bf16' },
];
const WITH_INT8_CACHE = { precision: 'bf16', kvDtype: 'int8' } as const;

let networks: Record<Precision, TinyNetwork>;
beforeAll(() => {
  const shape = { numLayers: 2, hiddenSize: 24, intermediateSize: 40, headDim: 8, vocabSize: 67 };
  const make = (precision: Precision, changes: Partial<TinyShape> = {}) =>
    makeTinyNetwork({ ...shape, precision, ...changes });
  const superblocks = { hiddenSize: 256, intermediateSize: 256, headDim: 64, numLayers: 1 };
  networks = {
    f32: make('f32'),
    bf16: make('bf16'),
    int8: make('int8'),
    int4: make('int4'),
    mixed: make('mixed', superblocks),
  };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

/** Matrices of superblocks are ten times as wide, and slow: half of the sequences, one of them longer than a split. */
const lengthsIn = (precision: Precision) => (precision === 'mixed' ? LENGTHS.slice(0, 4) : LENGTHS);

function makeTokens(precision: Precision): number[][] {
  const random = new Random(21);
  return lengthsIn(precision).map((length) => Array.from({ length }, () => random.below(67)));
}

type Logits = Float32Array[][];

type Changes = Partial<ExecutorOptions> & { precision?: Precision };

function withExecutor(
  { precision = 'f32', ...changes }: Changes,
  run: (sequences: PagedSequences) => void,
): Logits {
  const options = {
    numBlocks: POOL_BLOCKS,
    maxNumTokens: 600,
    maxLogitRows: 600,
    ...changes,
  } as const;
  const executor = new NativeExecutor(networks[precision], executorOptions(options));
  const blocks = new Random(changes.threads ?? 0).permutation(POOL_BLOCKS);
  const sequences = new PagedSequences(executor, networks[precision], makeTokens(precision), blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

/** Each sequence whole and alone. */
function alone(changes: Changes): Logits {
  return withExecutor(changes, (sequences) => {
    for (const [sequence, upTo] of lengthsIn(changes.precision ?? 'f32').entries())
      sequences.step([{ sequence, upTo }]);
  });
}

/** Context chunks of random sizes next to generation rows. */
function mixed(changes: Changes, seed: number): Logits {
  return withExecutor(changes, (sequences) =>
    sequences.runMixed(seed, 600, (random) => (random.uniform() < 0.5 ? 1 : 1 + random.below(200))),
  );
}

describe.each(instructionSets)('a sequence on %s', (instructionSet) => {
  const isBest = instructionSet === bestInstructionSet;
  describe.each(isBest ? [...FORMATS, WITH_INT8_CACHE] : FORMATS)(
    'with weights in $precision, cache in $kvDtype',
    (format) => {
      let expected: Logits;

      it('has the same bits alone, chunked, mixed with others, at 1, 2 and 8 threads', () => {
        expected = alone({ instructionSet, ...format, threads: 1 });
        for (const threads of [2, 8]) {
          expectSameLogits(mixed({ instructionSet, ...format, threads }, 100 + threads), expected);
        }
        expectSameLogits(alone({ instructionSet, ...format, threads: 8 }), expected);
      });

      it('has the same bits at any block size', () => {
        for (const tokensPerBlock of [8, 64]) {
          expectSameLogits(mixed({ instructionSet, ...format, tokensPerBlock }, tokensPerBlock), expected);
        }
      });
    },
  );
});

describe('a block handed out again', () => {
  it.each([...FORMATS, WITH_INT8_CACHE])(
    'shows nothing of its old tenant, not even NaN, in $precision, cache in $kvDtype',
    ({ precision, kvDtype }) => {
      const network = networks[precision];
      const poisoned = {
        ...network,
        inverseFrequencies: new Float32Array(network.inverseFrequencies.length).fill(NaN),
      };
      const tokens = [Array.from({ length: 60 }, (_, i) => i)];
      const blocks = [0, 1, 2, 3];
      const run = (poison: boolean) => {
        const executor = new NativeExecutor(network, executorOptions({ kvDtype, numBlocks: 4 }));
        if (poison) {
          const before = new PagedSequences(executor, poisoned, tokens, blocks);
          before.runAll([60]);
          expect(before.logits[0]![59]!.every(Number.isNaN)).toBe(true);
        }
        const sequences = new PagedSequences(executor, network, tokens, blocks);
        sequences.runAll([21]);
        executor.close();
        return sequences.logits;
      };
      const clean = run(false);
      expect(clean[0]![59]!.every(Number.isFinite)).toBe(true);
      expectSameLogits(run(true), clean);
    },
  );
});

describe('a sequence that becomes NaN', () => {
  it.each([...FORMATS, WITH_INT8_CACHE])(
    'is told of its own failure, and its neighbours keep their bits, in $precision, cache in $kvDtype',
    ({ precision, kvDtype }) => {
      const network = networks[precision];
      const { inverseFrequencies, shape } = network;
      const half = inverseFrequencies.length;
      const frequencies = new Float32Array(2 * half).fill(NaN);
      frequencies.set(inverseFrequencies);
      const run = (poisoned: boolean) => {
        const executor = new NativeExecutor(network, executorOptions({ kvDtype }));
        const sequences = [0, 1, 2].map((s) => ({
          tokens: Array.from({ length: 9 }, (_, i) => (i * 7 + s) % shape.vocabSize),
          cached: 0,
          blocks: [s],
          ropeRow: poisoned && s === 1 ? 1 : 0,
        }));
        const batch = {
          ...makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies: frequencies }),
          ropeScales: Float32Array.of(1, 1),
        };
        const output = makeSamplingOutput(3);
        executor.step(batch, makeSamplingBatch([{}, {}, {}]), output);
        const logits = executor.forward(batch).slice();
        executor.close();
        return { logits, output };
      };
      const [clean, poisoned] = [run(false), run(true)];
      const row = (logits: Float32Array, s: number) =>
        logits.subarray(s * shape.vocabSize, (s + 1) * shape.vocabSize);
      expect(row(poisoned.logits, 1).every(Number.isNaN)).toBe(true);
      for (const s of [0, 2]) expect(row(poisoned.logits, s)).toEqual(row(clean.logits, s));
      expect([...clean.output.status]).toEqual([0, 0, 0]);
      expect(poisoned.output.status[1]).not.toBe(0);
      expect([poisoned.output.status[0], poisoned.output.status[2]]).toEqual([0, 0]);
    },
  );
});
