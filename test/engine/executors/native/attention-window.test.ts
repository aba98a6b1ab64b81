import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { PackedBatch } from '../../../../engine/packed-call/packed-batch.js';
import { AttentionWindow } from '../../../../kvcache/attention-window.js';
import type { KvDtype } from '../../../../kvcache/cache-shape.js';
import { resolveWindow } from '../../../../kvcache/kv-cache-options.js';
import { Random } from '../../../../tools/support/random.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { expectedLogits } from '../../../support/expected-logits.js';
import { greatestError } from '../../../support/naive-network.js';
import {
  bestInstructionSet,
  executorOptions,
  instructionSets,
  multipliesPairs,
} from '../../../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../../../support/paged-sequences.js';

// The longest goes around its blocks many times, and its window crosses the borders of splits of the cache.
const LENGTHS = [40, 3, 17, 1100, 90, 1, 66];
const VOCABULARY = 67;

let networks: Record<KvDtype, TinyNetwork>;
beforeAll(() => {
  const shape = { numLayers: 2, hiddenSize: 24, intermediateSize: 40, headDim: 8, vocabSize: VOCABULARY };
  networks = {
    f32: makeTinyNetwork({ ...shape, precision: 'f32' }),
    bf16: makeTinyNetwork({ ...shape, precision: 'bf16' }),
    int8: makeTinyNetwork({ ...shape, precision: 'f32', headDim: 10 }),
  };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

type Logits = Float32Array[][];

function makeTokens(lengths: readonly number[]): number[][] {
  const random = new Random(21);
  return lengths.map((length) => Array.from({ length }, () => random.below(VOCABULARY)));
}

/** The pool has just the blocks that the sequences hold at their longest. */
function withExecutor(
  changes: Partial<ExecutorOptions>,
  run: (sequences: PagedSequences) => void,
  lengths: readonly number[] = LENGTHS,
): Logits {
  const options = executorOptions({ maxNumTokens: 600, maxLogitRows: 600, ...changes });
  const window = resolveWindow(options);
  const blocksOf = (length: number) => Math.ceil(length / options.tokensPerBlock);
  const numBlocks = lengths.reduce(
    (sum, length) => sum + Math.min(blocksOf(length), window?.maxBlocks ?? Number.POSITIVE_INFINITY),
    0,
  );
  const network = networks[options.kvDtype];
  const executor = new NativeExecutor(network, { ...options, numBlocks });
  const blocks = new Random(options.threads).permutation(numBlocks);
  const sequences = new PagedSequences(executor, network, makeTokens(lengths), blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

/** Runs one token a step, all sequences side by side: nothing is ever overwritten that is still read. */
function oneByOne(changes: Partial<ExecutorOptions>): Logits {
  return withExecutor(changes, (sequences) => sequences.runAll(LENGTHS.map(() => 1)));
}

/** Context chunks of random sizes next to generation rows. */
function mixed(changes: Partial<ExecutorOptions>, seed: number): Logits {
  return withExecutor(changes, (sequences) =>
    sequences.runMixed(seed, 600, (random) => (random.uniform() < 0.3 ? 1 : 1 + random.below(300))),
  );
}

const WINDOWS = [
  { maxAttentionWindow: 1 },
  { maxAttentionWindow: 21, sinkTokenLength: 5 },
  { maxAttentionWindow: 64 },
  { maxAttentionWindow: 530, sinkTokenLength: 4 },
] as const;
/** Numbers of threads, each with some of the windows: which rows a thread takes does not depend on a window. */
const IN_THREADS = [
  { ...WINDOWS[0], threads: [8] },
  { ...WINDOWS[1], threads: [1, 2] },
  { ...WINDOWS[2], threads: [1] },
  { ...WINDOWS[3], threads: [2, 8] },
];

describe.each(instructionSets)('a sequence in a window, on %s', (instructionSet) => {
  it.each(WINDOWS)('%o is what the naive network with a mask gives', (window) => {
    for (const kvDtype of ['f32', 'bf16', 'int8'] as const) {
      const logits = mixed({ ...window, instructionSet, kvDtype, threads: 2 }, 3);
      for (const [s, tokens] of makeTokens(LENGTHS).entries()) {
        if (tokens.length > 100) continue;
        const expected = expectedLogits(networks[kvDtype], tokens, {
          kvDtype,
          roundsInputs: multipliesPairs(instructionSet) && kvDtype === 'bf16',
          roundsAttention: multipliesPairs(instructionSet) && kvDtype === 'bf16',
          window: {
            tokens: window.maxAttentionWindow,
            sinks: 'sinkTokenLength' in window ? window.sinkTokenLength : 0,
          },
        });
        expect(greatestError(logits[s]!, expected)).toBeLessThan(kvDtype === 'f32' ? 2e-5 : 4e-2);
      }
    }
  });

  const isBest = instructionSet === bestInstructionSet;
  describe.each<KvDtype>(isBest ? ['f32', 'bf16', 'int8'] : ['f32', 'bf16'])('in %s', (kvDtype) => {
    it.each(isBest ? IN_THREADS : [IN_THREADS[1]!, IN_THREADS[3]!])(
      '%o has the same bits token by token and in any chunks',
      ({ threads: counts, ...window }) => {
        const options = { ...window, instructionSet, kvDtype };
        const expected = oneByOne({ ...options, threads: 1 });
        for (const threads of counts)
          expectSameLogits(mixed({ ...options, threads }, 100 + threads), expected);
      },
    );

    it('has the same bits at any block size', () => {
      const options = { instructionSet, kvDtype, maxAttentionWindow: 45, sinkTokenLength: 9 };
      const expected = oneByOne({ ...options, tokensPerBlock: 8 });
      for (const tokensPerBlock of [16, 64])
        expectSameLogits(mixed({ ...options, tokensPerBlock }, tokensPerBlock), expected);
    });

    it('has the bits of no window where it is not longer than the window', () => {
      const whole = mixed({ instructionSet, kvDtype }, 5);
      const windowed = mixed({ instructionSet, kvDtype, maxAttentionWindow: 90, sinkTokenLength: 7 }, 6);
      const isShort = (_: unknown, s: number) => LENGTHS[s]! <= 90;
      expectSameLogits(windowed.filter(isShort), whole.filter(isShort));
      expect(windowed[3]![1000]).not.toEqual(whole[3]![1000]);
    });
  });
});

describe('a window that the executor is given', () => {
  const open = (changes: Partial<ExecutorOptions>) => {
    new NativeExecutor(networks.f32, executorOptions(changes)).close();
  };

  it.each([
    [{ maxAttentionWindow: -1 }, /maxAttentionWindow must be between 0 and/],
    [{ maxAttentionWindow: 2 ** 31 - 1 }, /maxAttentionWindow must be between 0 and/],
    [{ maxAttentionWindow: 8, sinkTokenLength: 8 }, /sinkTokenLength must be between 0 and 7, but it is 8/],
    [{ maxAttentionWindow: 8, sinkTokenLength: -1 }, /sinkTokenLength must be between 0 and 7/],
    [{ sinkTokenLength: 1 }, /sinkTokenLength must be between 0 and 0, but it is 1/],
    [{ maxAttentionWindow: Number.NaN }, /maxAttentionWindow/],
  ])('is refused where it makes no sense: %o', (changes, message) => {
    expect(() => open(changes)).toThrow(message);
  });

  it('is refused for a network whose attention does not follow its cache', () => {
    const { plan } = networks.f32;
    const attention = plan.ops.findIndex(({ op }) => op === 'attention');
    const twice = plan.ops.toSpliced(attention, 0, plan.ops[attention]!);
    const broken = { ...networks.f32, plan: { ...plan, ops: twice } };
    expect(() => new NativeExecutor(broken, executorOptions({ maxAttentionWindow: 8 }))).toThrow(
      /\(attention\) of the plan: with an attention window it must follow the ropeAndCache of its layer directly/,
    );
    new NativeExecutor(broken, executorOptions()).close();
  });
});

describe('a batch in a window', () => {
  const sizes = { tokensPerBlock: 8, numBlocks: 4, maxAttentionWindow: 20, sinkTokenLength: 3 };
  const window = new AttentionWindow(sizes);

  /** Positions 30 to 33 of a sequence whose table has four entries: 30 lies in block 3 and entry 3, 33 in entry 1. */
  function forward(corrupt: (batch: PackedBatch) => void, length = 34): void {
    const executor = new NativeExecutor(networks.f32, executorOptions(sizes));
    const tokens = Array.from({ length }, (_, i) => i);
    const blocks = [2, 0, 3, 1];
    const { inverseFrequencies } = networks.f32;
    const batch = makeStepBatch([{ tokens, cached: 30, blocks }], {
      tokensPerBlock: 8,
      inverseFrequencies,
      window,
    });
    try {
      corrupt(batch);
      executor.forward(batch);
    } finally {
      executor.close();
    }
  }

  it('is taken with the table of the window, however long the sequence is', () => {
    expect(window.maxBlocks).toBe(4);
    forward(() => {});
  });

  it.each<[string, (batch: PackedBatch) => void, RegExp]>([
    [
      'a slot of another entry than the one whose turn it is',
      (b) => {
        b.slots[3] = 2 * 8 + 1;
      },
      /slots\[3\] is 17, but the block table of sequence 0 puts its cache position 33 at 1\b/,
    ],
    [
      'a table entry beyond the pool',
      (b) => {
        b.blockTables[3] = 4;
      },
      /blockTables\[3\] is block 4/,
    ],
    [
      'a table entry below the pool',
      (b) => {
        b.blockTables[1] = -1;
      },
      /blockTables\[1\] is block -1/,
    ],
    [
      'a length beyond maxSeqLen',
      (b) => {
        b.contextLength[0] = 5000;
      },
      /contextLength\[0\] is 5000, but it must be between 4 .* and 2048/,
    ],
    [
      'a table that is too short for the window',
      (b) => {
        Object.assign(b, { maxBlocks: 3 });
      },
      /contextLength\[0\] is 34, but it must be between 4 .* and 24/,
    ],
  ])('refuses %s', (_, corrupt, message) => {
    expect(() => forward(corrupt)).toThrow(message);
  });
});
