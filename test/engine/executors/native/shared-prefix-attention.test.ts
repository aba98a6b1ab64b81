import { afterAll, beforeAll, describe, it } from 'vitest';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { Random } from '../../../../tools/support/random.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../../../support/paged-sequences.js';
import { isShort } from '../../../support/scale.js';

const TOKENS_PER_BLOCK = 16;
const VOCABULARY = 67;
/** Blocks that a sequence shares with an earlier one, and its length; null: it begins a prefix of its own. */
type Sequence = { of: { sequence: number; blocks: number } | null; length: number };

const following = (sequence: number, blocks: number, length: number): Sequence => ({
  of: { sequence, blocks },
  length,
});

/**
 * Two prompts, the second one longer than a split of the cache; more sequences than a pass has rows; prefixes
 * that end within a split, at its end, and next to a step of 32 tokens; and followers of followers.
 */
const SEQUENCES: Sequence[] = [
  { of: null, length: 135 },
  { of: null, length: 610 },
  ...Array.from({ length: 20 }, (_, i) => following(0, 8, 131 + 3 * i)),
  ...Array.from({ length: 2 }, (_, i) => following(1, 32, 516 + 19 * i)),
  ...Array.from({ length: 2 }, (_, i) => following(1, 37, 595 + 7 * i)),
  following(2, 6, 106),
  following(24, 36, 584),
  following(0, 3, 60),
];

let plain: TinyNetwork;
let varied: TinyNetwork;
let sunk: TinyNetwork;
beforeAll(() => {
  const shape = { numLayers: 2, hiddenSize: 24, intermediateSize: 40, vocabSize: VOCABULARY };
  const heads = { headDim: 16, numHeads: 6, numKvHeads: 2 };
  plain = makeTinyNetwork({ ...shape, ...heads });
  varied = makeTinyNetwork({ ...shape, headDim: 8, varied: true });
  sunk = makeTinyNetwork({ ...shape, ...heads, numLayers: 1, sunk: true });
});
afterAll(() => {
  plain.remove();
  varied.remove();
  sunk.remove();
});

function tokensOf(): number[][] {
  const random = new Random(5);
  const all: number[][] = [];
  for (const { of, length } of SEQUENCES) {
    const shared = of === null ? [] : all[of.sequence]!.slice(0, of.blocks * TOKENS_PER_BLOCK);
    all.push([...shared, ...Array.from({ length: length - shared.length }, () => random.below(VOCABULARY))]);
  }
  return all;
}

function logitsOf(
  network: TinyNetwork,
  changes: Partial<ExecutorOptions>,
  run: (sequences: PagedSequences) => void,
): Float32Array[][] {
  const options = executorOptions({
    ...{ maxNumTokens: 1200, maxLogitRows: 1200, maxNumSequences: 64, numBlocks: 1024, ...changes },
    tokensPerBlock: TOKENS_PER_BLOCK,
  });
  const executor = new NativeExecutor(network, options);
  const blocks = new Random(options.threads).permutation(options.numBlocks);
  const sequences = new PagedSequences(executor, network, tokensOf(), blocks);
  run(sequences);
  executor.close();
  return sequences.logits;
}

/** Every sequence alone, with blocks of its own. */
const alone = (network: TinyNetwork, changes: Partial<ExecutorOptions>) =>
  logitsOf(network, changes, (sequences) => {
    for (const [sequence, { length }] of SEQUENCES.entries()) sequences.step([{ sequence, upTo: length }]);
  });

/** The first sequence of each prefix in a piece; the others side by side, a few rows of each in a step. */
const sharing = (network: TinyNetwork, changes: Partial<ExecutorOptions>, seed: number) =>
  logitsOf(network, changes, (sequences) => {
    for (const [sequence, { of, length }] of SEQUENCES.entries()) {
      if (of !== null) sequences.share(sequence, of.sequence, of.blocks);
      // What others will share is there before they begin; the rest comes side by side.
      const last = Math.max(
        0,
        ...SEQUENCES.map((other) =>
          other.of?.sequence === sequence ? other.of.blocks * TOKENS_PER_BLOCK : 0,
        ),
      );
      if (last > (of?.blocks ?? 0) * TOKENS_PER_BLOCK)
        sequences.step([{ sequence, upTo: Math.min(length, last) }]);
    }
    sequences.runMixed(seed, 1200, (random) => (random.uniform() < 0.2 ? 40 : 1 + random.below(4)));
  });

/** Code under a sanitizer takes seconds for a run. */
const THREAD_COUNTS = isShort ? [5] : [1, 5];
const KV_DTYPES = ['f32', 'bf16', 'int8'] as const;

describe.each(instructionSets)('sequences that share blocks, on %s', (instructionSet) => {
  it.each(KV_DTYPES)('have the bits of each alone, cache in %s', (kvDtype) => {
    const expected = alone(plain, { instructionSet, kvDtype });
    for (const threads of THREAD_COUNTS) {
      expectSameLogits(sharing(plain, { instructionSet, kvDtype, threads }, threads), expected);
    }
  });

  it('have them where heads have a score without a value', () => {
    const expected = alone(sunk, { instructionSet, kvDtype: 'int8' });
    for (const threads of THREAD_COUNTS)
      expectSameLogits(sharing(sunk, { instructionSet, kvDtype: 'int8', threads }, threads), expected);
  });

  it('have them where a layer has a window and a cap of its own', () => {
    const expected = alone(varied, { instructionSet, kvDtype: 'bf16' });
    expectSameLogits(sharing(varied, { instructionSet, kvDtype: 'bf16' }, 7), expected);
  });
});

// Whether rows are read together is decided before any instruction set has its turn.
it('sequences in an engine with a window have the bits of each alone: nothing is read together', () => {
  const options = { kvDtype: 'bf16', maxAttentionWindow: 48, sinkTokenLength: 4 } as const;
  const apart = logitsOf(plain, options, (sequences) =>
    sequences.runMixed(3, 1200, (random) => 1 + random.below(60)),
  );
  expectSameLogits(apart, alone(plain, options));
});
