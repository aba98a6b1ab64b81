import { afterAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { Random } from '../../tools/support/random.js';
import { makeTinyNetwork, PICTURED_WINDOW } from '../../tools/support/tiny-network.js';
import { describeExecutors, NATIVE, RANKS, type TestExecutor, WASM } from '../support/executors.js';
import { greatestError, naiveLogits } from '../support/naive-network.js';
import { executorOptions } from '../support/native-options.js';
import {
  expectSameLogits,
  PagedSequences,
  type Piece,
  type SteppedExecutor,
} from '../support/paged-sequences.js';

const VOCABULARY = 67;
const HIDDEN = 24;
const TOLERANCE = 2e-5;
const TOKENS_PER_BLOCK = 8;

type Span = readonly [start: number, end: number];

/** Lengths of sequences and their pictures: at a prompt's beginning and end, across a split of the cache, longer than the window, of one token. */
const SEQUENCES: readonly (readonly [length: number, ...pictures: Span[]])[] = [
  [560, [0, 9], [20, 57], [500, 531], [540, 541]],
  [90, [60, 90]],
  [66],
  // These begin alike, and end with few rows, of which those of pictures cannot be computed together.
  [74, [70, 73]],
  [74, [71, 73]],
];
const COMMON = [3, 4] as const;
const PICTURES = SEQUENCES.map(([, ...pictures]) => pictures);

/** Rows of pictures. */
const OWN_ROWS = Array.from({ length: 11 }, (_, row) =>
  Float32Array.from({ length: HIDDEN }, (_, i) => Math.sin(HIDDEN * row + i)),
);
const TABLE = Float32Array.from(OWN_ROWS.flatMap((row) => [...row]));

const TOKENS = (() => {
  const random = new Random(23);
  const all = SEQUENCES.map(([length]) => Array.from({ length }, () => random.below(VOCABULARY)));
  all[COMMON[1]]!.splice(0, 64, ...all[COMMON[0]]!.slice(0, 64));
  for (const [s, spans] of PICTURES.entries())
    for (const [start, end] of spans)
      for (let place = start; place < end; place++)
        all[s]![place] = VOCABULARY + ((place + s) % OWN_ROWS.length);
  return all;
})();

const network = makeTinyNetwork({
  ...{ hiddenSize: HIDDEN, intermediateSize: 40, headDim: 8, vocabSize: VOCABULARY, bias: true },
  numLayers: 3,
  pictured: true,
});
afterAll(() => network.remove());

/** First row and number of rows of each run of rows of pictures. */
function picturesOf(ids: Int32Array, queryStart: Int32Array): number[] {
  const starts = new Set(queryStart);
  const found: number[] = [];
  for (const [t, id] of ids.entries()) {
    if (id < VOCABULARY) continue;
    const goesOn = t > 0 && ids[t - 1]! >= VOCABULARY && !starts.has(t);
    if (goesOn) found[found.length - 1]!++;
    else found.push(t, 1);
  }
  return found;
}

/** The executor, whose batches get rows of pictures, and say which they are where `says` is true. */
function seeing({ options, vocabSize, forward }: SteppedExecutor, says: boolean): SteppedExecutor {
  return {
    options,
    vocabSize,
    forward: (batch) => {
      const pictures = picturesOf(batch.tokenIds, batch.queryStart);
      const promptTables = [{ first: 0, count: batch.numTokens, table: TABLE }];
      // As in iterations without pictures.
      if (pictures.length === 0) return forward({ ...batch, pictures: null });
      return forward({ ...batch, promptTables, pictures: says ? Int32Array.from(pictures) : null });
    },
  };
}

async function logitsOf(
  { open }: TestExecutor,
  changes: Partial<ExecutorOptions>,
  run: (sequences: PagedSequences) => void,
  says = true,
): Promise<Float32Array[][]> {
  const limits = { maxNumTokens: 900, maxLogitRows: 900, tokensPerBlock: TOKENS_PER_BLOCK };
  const numBlocks = SEQUENCES.reduce((sum, [length]) => sum + Math.ceil(length / TOKENS_PER_BLOCK), 0);
  const executor = await open(network, executorOptions({ ...limits, numBlocks, ...changes }));
  const stepped: SteppedExecutor = {
    options: executor.options,
    vocabSize: executor.vocabSize,
    forward: (batch) => executor.forward(batch),
  };
  const sequences = new PagedSequences(
    seeing(stepped, says),
    network,
    TOKENS,
    new Random(5).permutation(numBlocks),
  );
  run(sequences);
  executor.close();
  return sequences.logits;
}

const alone = (sequences: PagedSequences): void => {
  for (const [sequence, [length]] of SEQUENCES.entries()) sequences.step([{ sequence, upTo: length }]);
};

/**
 * Chunks of random sizes that cut no picture, next to one another; the two that begin alike share blocks and
 * end in the same steps.
 */
const mixed = (sequences: PagedSequences): void => {
  const random = new Random(77);
  const done = SEQUENCES.map(() => 0);
  const upTo = (sequence: number, end: number): Piece => {
    const cut = PICTURES[sequence]!.find(([start, last]) => start < end && end < last);
    done[sequence] = cut?.[1] ?? end;
    return { sequence, upTo: done[sequence]! };
  };
  const [one, other] = COMMON;
  sequences.step([upTo(one, 64)]);
  sequences.share(other, one, 64 / TOKENS_PER_BLOCK);
  sequences.step([upTo(one, 70), upTo(other, 71)]);
  sequences.step([upTo(one, 73), upTo(other, 73)]);
  sequences.step([upTo(one, 74), upTo(other, 74)]);
  while (done.some((length, s) => length < SEQUENCES[s]![0])) {
    const pieces = random.permutation(SEQUENCES.length).flatMap((sequence) => {
      const left = SEQUENCES[sequence]![0] - done[sequence]!;
      if (left === 0 || random.uniform() < 0.3) return [];
      return [upTo(sequence, done[sequence]! + Math.min(left, 1 + random.below(60)))];
    });
    if (pieces.length > 0) sequences.step(pieces);
  }
};

const { plan, weights, inverseFrequencies } = network;
const expected = TOKENS.map((tokens, s) =>
  naiveLogits(plan, weights, tokens, {
    ...{ kvDtype: 'f32', inverseFrequencies, ropeScale: 1, pictures: PICTURES[s]! },
    promptRows: new Map(
      tokens.flatMap((id, place) => (id < VOCABULARY ? [] : [[place, OWN_ROWS[id - VOCABULARY]!]])),
    ),
  }),
);

describeExecutors(
  (on) => {
    it.each(on.instructionSets)(
      'lets tokens of a picture see all of it, past the window, with the same bits alone and in any chunks (%s)',
      async (instructionSet) => {
        const options = instructionSet === undefined ? {} : { instructionSet };
        const rows = await logitsOf(on, options, alone);
        for (const [s, wanted] of expected.entries())
          expect(greatestError(rows[s]!, wanted)).toBeLessThan(TOLERANCE);
        expectSameLogits(await logitsOf(on, { ...options, threads: 1 }, mixed), rows);
      },
    );

    it('lets each token see up to itself where a batch names no pictures', async () => {
      const rows = await logitsOf(on, {}, alone, false);
      expect(greatestError(rows[2]!, expected[2]!)).toBeLessThan(TOLERANCE);
      for (const s of [0, 1, 3, 4]) expect(greatestError(rows[s]!, expected[s]!)).toBeGreaterThan(0.01);
    });
  },
  [NATIVE, RANKS, WASM],
);

describe('native', () => {
  it.each(['bf16', 'int8'] as const)('keeps its bits with a cache in %s', async (kvDtype) => {
    const rows = await logitsOf(NATIVE, { kvDtype }, alone);
    expectSameLogits(await logitsOf(NATIVE, { kvDtype }, mixed), rows);
  });
});

describe.each([NATIVE, WASM])('pictures that are wrong, on $name', (on) => {
  const refused =
    (pictures: number[], changes: Partial<ExecutorOptions> = {}, plain = network) =>
    async () => {
      const executor = await on.open(plain, executorOptions({ tokensPerBlock: 8, ...changes }));
      const sequences = new PagedSequences(
        {
          options: executor.options,
          vocabSize: VOCABULARY,
          forward: (batch) => executor.forward({ ...batch, pictures: Int32Array.from(pictures) }),
        },
        plain,
        [Array(8).fill(1), Array(8).fill(2)],
        [0, 1, 2, 3],
      );
      try {
        sequences.step([
          { sequence: 0, upTo: 8 },
          { sequence: 1, upTo: 8 },
        ]);
      } finally {
        executor.close();
      }
    };

  it.each([
    ['a picture of two sequences', [6, 4], /pictures has rows 6 to 10, but rows of one sequence from 0 on/],
    ['pictures that overlap', [1, 3, 3, 2], /pictures has rows 3 to 5, but rows of one sequence from 4 on/],
    ['a picture of no rows', [1, 0], /pictures has rows 1 to 1/],
    ['a picture before the first row', [-1, 2], /pictures has rows -1 to 1/],
    ['a picture beyond the rows', [15, 2], /pictures has rows 15 to 17/],
    ['half a picture', [1, 2, 3], /pictures has 3 numbers, but two of each picture/],
  ])('%s', async (_, pictures, message) => {
    await expect(refused(pictures)).rejects.toThrow(message);
  });

  it('any in a window of the engine, or of a network that attends within none', async () => {
    const windowed = { maxAttentionWindow: PICTURED_WINDOW + 2 };
    await expect(refused([1, 2], windowed)).rejects.toThrow(
      /an attention window does not keep pictures whole/,
    );
    const causal = makeTinyNetwork({ vocabSize: VOCABULARY });
    await expect(refused([1, 2], {}, causal)).rejects.toThrow(/no layer attends within pictures/);
    causal.remove();
  });
});
