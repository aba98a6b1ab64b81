import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor, ExecutorOptions } from '../../engine/executors/executor.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import { Random } from '../../tools/support/random.js';
import { makeTinyNetwork, type TinyNetwork } from '../../tools/support/tiny-network.js';
import { describeExecutors, type TestExecutor } from '../support/executors.js';
import { greatestError, naiveLogits } from '../support/naive-network.js';
import { executorOptions } from '../support/native-options.js';
import { expectSameLogits, PagedSequences, type SteppedExecutor } from '../support/paged-sequences.js';

const LENGTHS = [40, 3, 17, 90, 1, 66];
const VOCABULARY = 67;
const TOLERANCE = 2e-5;

type Kind = 'plain' | 'varied' | 'gateless' | 'experts' | 'stateful' | 'sunk' | 'clamped' | 'sees';
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
    sees: makeTinyNetwork({ ...shape, sees: true }),
  };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

const TOKENS = (() => {
  const random = new Random(21);
  return LENGTHS.map((length) => Array.from({ length }, () => random.below(VOCABULARY)));
})();

/** Rows of pictures: an embedding, and what the first layer adds. */
const OWN_ROWS = Array.from({ length: 7 }, (_, row) =>
  Float32Array.from({ length: 48 }, (_, i) => Math.sin(48 * row + i)),
);
/** The same tokens with pictures in some sequences, whose ids name these rows. */
const SEEN = TOKENS.map((tokens, sequence) =>
  tokens.map((token, place) => {
    const isPicture = sequence % 2 === 0 && (place % 19) + (place % 5) > 14;
    return isPicture ? VOCABULARY + ((place + sequence) % OWN_ROWS.length) : token;
  }),
);
const isOwn = (id: number) => id >= VOCABULARY;
/** Positions of a token in time, height and width. */
const gridOf = (id: number, place: number) =>
  [place, place + (isOwn(id) ? id % 5 : 0), place + (isOwn(id) ? (2 * id) % 7 : 0)] as const;

/** The executor, whose batches get the rows and the positions of pictures. */
function seeing(executor: Executor): SteppedExecutor {
  const table = Float32Array.from(OWN_ROWS.flatMap((row) => [...row]));
  return {
    options: executor.options,
    vocabSize: executor.vocabSize,
    forward: (batch) => {
      const { tokenIds, positions, queryStart, numSequences } = batch;
      const grids = [...tokenIds].flatMap((id, t) => gridOf(id, positions[t]!).slice(1));
      const spans = Array.from({ length: numSequences }, (_, s) => ({
        first: queryStart[s]!,
        count: queryStart[s + 1]! - queryStart[s]!,
        table,
      }));
      const promptTables = spans.filter(({ first, count }) =>
        tokenIds.subarray(first, first + count).some(isOwn),
      );
      return executor.forward({
        ...batch,
        promptTables,
        // As in iterations without pictures, where all axes have the same positions.
        gridPositions: promptTables.length === 0 ? null : Int32Array.from(grids),
      });
    },
  };
}

type Run = (sequences: PagedSequences) => void;
type Name = keyof typeof networks;
const tokensOf = (network: Name) => (network === 'sees' ? SEEN : TOKENS);

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
  const stepped = network === 'sees' ? seeing(executor) : executor;
  const sequences = new PagedSequences(stepped, networks[network], tokensOf(network), blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

/** Runs one sequence after the other, each whole. */
const alone: Run = (sequences) => {
  for (const [sequence, length] of LENGTHS.entries()) sequences.step([{ sequence, upTo: length }]);
};
/** Context chunks of random sizes next to generation rows. */
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
  ['pictures, by whose grids RoPE turns', 'sees', {}],
];

/** What the naive network gives with settings, which is the same for every executor. */
const expectedOf = new Map<string, ReturnType<typeof naiveLogits>[]>();
function naiveRows(setting: string, network: Name, options: Partial<ExecutorOptions>) {
  const known = expectedOf.get(setting);
  if (known !== undefined) return known;
  const { plan, weights, inverseFrequencies } = networks[network];
  const { maxAttentionWindow: tokens, sinkTokenLength: sinks = 0 } = options;
  const window = tokens === undefined ? {} : { window: { tokens, sinks } };
  const made = tokensOf(network).map((ofSequence) => {
    const pictures = {
      promptRows: new Map(
        ofSequence.flatMap((id, place) => (isOwn(id) ? [[place, OWN_ROWS[id - VOCABULARY]!]] : [])),
      ),
      gridPositions: ofSequence.map(gridOf),
    };
    return naiveLogits(plan, weights, ofSequence, {
      ...{ kvDtype: 'f32', inverseFrequencies, ropeScale: 1 },
      ...window,
      ...(network === 'sees' ? pictures : {}),
    });
  });
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
