import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import { Random } from '../../tools/support/random.js';
import { makeTinyNetwork, type TinyNetwork } from '../../tools/support/tiny-network.js';
import { describeExecutors, type TestExecutor } from '../support/executors.js';
import { greatestError, naiveLogits } from '../support/naive-network.js';
import { executorOptions } from '../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../support/paged-sequences.js';

const LENGTHS = [40, 3, 17, 90, 1, 66];
const VOCABULARY = 67;
const TOLERANCE = 2e-5;

type Kind = 'plain' | 'varied' | 'gateless' | 'experts' | 'stateful' | 'sunk' | 'clamped';
let networks: Record<Kind, TinyNetwork>;
beforeAll(() => {
  const shape = { hiddenSize: 24, intermediateSize: 40, headDim: 8, vocabSize: VOCABULARY, bias: true };
  networks = {
    plain: makeTinyNetwork(shape),
    varied: makeTinyNetwork({ ...shape, varied: true }),
    gateless: makeTinyNetwork({ ...shape, gateless: true }),
    experts: makeTinyNetwork({ ...shape, experts: { count: 6, used: 2, normalize: true } }),
    sunk: makeTinyNetwork({ ...shape, sunk: true }),
    clamped: makeTinyNetwork({
      ...shape,
      varied: true,
      sunk: true,
      experts: { count: 6, used: 2, normalize: true, clamped: true },
    }),
    stateful: makeTinyNetwork({ ...shape, stateful: true, tiled: true }),
  };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

const TOKENS = (() => {
  const random = new Random(21);
  return LENGTHS.map((length) => Array.from({ length }, () => random.below(VOCABULARY)));
})();

type Run = (sequences: PagedSequences) => void;
type Name = keyof typeof networks;

/** The pool has just the blocks that the sequences hold at their longest, handed out in a random order. */
async function logitsOf(
  { open }: TestExecutor,
  network: Name,
  changes: Partial<ExecutorOptions>,
  run: Run,
): Promise<Float32Array[][]> {
  const options = executorOptions({ maxNumTokens: 200, maxLogitRows: 200, ...changes });
  const longest = resolveWindow(options)?.maxBlocks ?? Infinity;
  const numBlocks = LENGTHS.reduce(
    (sum, length) => sum + Math.min(Math.ceil(length / options.tokensPerBlock), longest),
    0,
  );
  const executor = await open(networks[network], { ...options, numBlocks });
  const blocks = new Random(options.tokensPerBlock).permutation(numBlocks);
  const sequences = new PagedSequences(executor, networks[network], TOKENS, blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

/** Runs one sequence after the other, each whole. */
const alone: Run = (sequences) => {
  for (const [sequence, length] of LENGTHS.entries()) sequences.step([{ sequence, upTo: length }]);
};
/** Context chunks of random sizes beside generation rows. */
const mixed =
  (seed: number): Run =>
  (sequences) =>
    sequences.runMixed(seed, 200, (random) => (random.uniform() < 0.3 ? 1 : 1 + random.below(80)));

const SETTINGS: [string, Name, Partial<ExecutorOptions>][] = [
  ['a network', 'plain', {}],
  ['layers that differ', 'varied', {}],
  ['mixtures of experts', 'experts', {}],
  ['layers that keep states', 'stateful', { numStateSlots: LENGTHS.length }],
  ['norms of heads, and an MLP without a gate', 'gateless', {}],
  ['norms of heads in a window with sinks', 'gateless', { maxAttentionWindow: 24, sinkTokenLength: 5 }],
  ['scores without values', 'sunk', {}],
  ['scores without values in layers that differ, with experts that are clamped', 'clamped', {}],
  ['scores without values in a window with sinks', 'sunk', { maxAttentionWindow: 24, sinkTokenLength: 5 }],
  ['a window', 'plain', { maxAttentionWindow: 21 }],
  ['a window with sinks', 'plain', { maxAttentionWindow: 24, sinkTokenLength: 5 }],
  ['layers that differ in a window', 'varied', { maxAttentionWindow: 45 }],
];

/** What the naive network gives with settings, which is the same for every executor. */
const expectedOf = new Map<string, ReturnType<typeof naiveLogits>[]>();
function naiveRows(setting: string, network: Name, options: Partial<ExecutorOptions>) {
  const known = expectedOf.get(setting);
  if (known !== undefined) return known;
  const { plan, weights, inverseFrequencies } = networks[network];
  const { maxAttentionWindow: tokens, sinkTokenLength: sinks = 0 } = options;
  const window = tokens === undefined ? {} : { window: { tokens, sinks } };
  const made = TOKENS.map((ofSequence) =>
    naiveLogits(plan, weights, ofSequence, { kvDtype: 'f32', inverseFrequencies, ropeScale: 1, ...window }),
  );
  expectedOf.set(setting, made);
  return made;
}

describeExecutors((on) => {
  const settings = SETTINGS.filter(([, network]) => network !== 'stateful' || on.runsStates);
  describe.each(settings)('%s', (setting, network, options) => {
    it(`gives what the naive network gives, with the same ${on.keepsBits ? 'bits' : 'logits within rounding'} alone, in a crowd, and in any chunks and blocks`, async () => {
      const rows = await logitsOf(on, network, options, alone);
      for (const [s, expected] of naiveRows(setting, network, options).entries())
        expect(greatestError(rows[s]!, expected)).toBeLessThan(TOLERANCE);
      // Sizes of blocks in turns: a window's borders lie inside and between blocks of both.
      const place = SETTINGS.findIndex(([name]) => name === setting);
      const [seed, tokensPerBlock] = place % 2 === 0 ? [102, 8] : [103, 32];
      const found = await logitsOf(on, network, { ...options, tokensPerBlock }, mixed(seed!));
      if (on.keepsBits) expectSameLogits(found, rows);
      else
        for (const [s, expected] of rows.entries())
          expect(greatestError(found[s]!, expected)).toBeLessThan(TOLERANCE);
    });
  });
});
