import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { KvDtype } from '../../../../kvcache/cache-shape.js';
import { Random } from '../../../../tools/support/random.js';
import { makeTinyNetwork, OWN_WINDOW, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { expectedLogits } from '../../../support/expected-logits.js';
import { greatestError } from '../../../support/naive-network.js';
import { executorOptions, instructionSets, multipliesPairs } from '../../../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../../../support/paged-sequences.js';

// One sequence goes beyond a split of the cache (512 tokens), so that its first layer sees nothing of whole splits.
const LENGTHS = [40, 3, 17, 560, 90, 1, 66];
const SHORT = [90, 17, 1];
const VOCABULARY = 67;

let networks: Record<KvDtype, TinyNetwork>;
beforeAll(() => {
  const shape = { hiddenSize: 24, intermediateSize: 40, headDim: 8, vocabSize: VOCABULARY, varied: true };
  networks = {
    f32: makeTinyNetwork({ ...shape, precision: 'f32' }),
    bf16: makeTinyNetwork({ ...shape, precision: 'bf16' }),
    int8: makeTinyNetwork({ ...shape, precision: 'f32' }),
  };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

function makeTokens(lengths: readonly number[] = LENGTHS): number[][] {
  const random = new Random(22);
  return lengths.map((length) => Array.from({ length }, () => random.below(VOCABULARY)));
}

function logitsOf(
  changes: Partial<ExecutorOptions>,
  run: (sequences: PagedSequences) => void,
  lengths = LENGTHS,
): Float32Array[][] {
  const options = executorOptions({ maxNumTokens: 600, maxLogitRows: 600, numBlocks: 64, ...changes });
  const network = networks[options.kvDtype];
  const executor = new NativeExecutor(network, options);
  const blocks = new Random(options.threads).permutation(options.numBlocks);
  const sequences = new PagedSequences(executor, network, makeTokens(lengths), blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

const oneByOne = (changes: Partial<ExecutorOptions>) =>
  logitsOf(changes, (sequences) => sequences.runAll(LENGTHS.map(() => 1)));

const mixed = (changes: Partial<ExecutorOptions>, seed: number, lengths = LENGTHS) => {
  const run = (sequences: PagedSequences) =>
    sequences.runMixed(seed, 600, (random) => (random.uniform() < 0.3 ? 1 : 1 + random.below(300)));
  return logitsOf(changes, run, lengths);
};

/** None, one that is wider than the first layer's own, and one that is narrower. */
const ENGINE_WINDOWS = [null, OWN_WINDOW + 17, OWN_WINDOW - 13];

describe.each(instructionSets)('layers that differ, on %s', (instructionSet) => {
  it.each(ENGINE_WINDOWS)('are what the naive network gives, in a window of %s', (maxAttentionWindow) => {
    for (const kvDtype of ['f32', 'bf16', 'int8'] as const) {
      const window = maxAttentionWindow === null ? {} : { maxAttentionWindow };
      const options = { ...window, instructionSet, kvDtype };
      const logits = mixed(options, 3, SHORT);
      const rounds = multipliesPairs(instructionSet) && kvDtype === 'bf16';
      for (const [s, tokens] of makeTokens(SHORT).entries()) {
        const expected = expectedLogits(networks[kvDtype], tokens, {
          kvDtype,
          roundsInputs: rounds,
          roundsAttention: rounds,
          ...(maxAttentionWindow === null ? {} : { window: { tokens: maxAttentionWindow, sinks: 0 } }),
        });
        expect(greatestError(logits[s]!, expected)).toBeLessThan(kvDtype === 'f32' ? 2e-5 : 4e-2);
      }
    }
  });

  it.each([{ kvDtype: 'bf16' as const }, { kvDtype: 'f32' as const, maxAttentionWindow: OWN_WINDOW + 17 }])(
    'have the same bits in any chunks, blocks and threads, %o',
    (setting) => {
      const expected = oneByOne({ ...setting, instructionSet, threads: 1 });
      expectSameLogits(mixed({ ...setting, instructionSet, threads: 8, tokensPerBlock: 32 }, 7), expected);
    },
  );
});

it('sinks are refused where layers differ', () => {
  const options = executorOptions({ maxAttentionWindow: 30, sinkTokenLength: 4 });
  expect(() => new NativeExecutor(networks.f32, options)).toThrow(
    /sinkTokenLength is 4, but with layers that have a window or a RoPE of their own there are no sinks/,
  );
});
