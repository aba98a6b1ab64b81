import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import type { Engine } from '../../engine/building/engine.js';
import type { Executor } from '../../engine/executors/executor.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  type TestExecutorOptions,
} from '../../tools/support/test-engine.js';
import { NATIVE, RANKS, WASM } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeTower, writeMadeTower } from '../support/made-towers.js';
import { instructionSets } from '../support/native-options.js';
import { RandomDrafts } from '../support/random-drafts.js';
import { type Answer, type RunOptions, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomNumbers } from './scenario.js';

const REQUESTS = 12;
const NEW_TOKENS = 24;
const MAX_SEQ_LEN = 128;
const TOKENS_PER_BLOCK = 8;
const BLOCKS_OF_ONE = MAX_SEQ_LEN / TOKENS_PER_BLOCK;
const WIDE_POOL = REQUESTS * BLOCKS_OF_ONE;
const SMALL_POOL = 2 * BLOCKS_OF_ONE;
const DRAFT_ROWS = 24;
/** Tokens of an iteration: hardly more than the longest picture along with all others. */
const FEW_TOKENS = 32;
/** Longer than the model's window, which is 3, and shorter; none is a multiple of a block. */
const PICTURES = [9, 17, 1, 5, 20, 12];
const DRAWN_WITH = { vocabSize: 128, width: 32 };

const engines = new TestEngines();
const folder = temporaryFolder('skein-both-ways');
let engine: Engine;
beforeAll(async () => {
  engine = await engines.get(writeMadeTower(folder, madeTower('gemma3')), 'f32');
});
afterAll(() => engines.remove());

/** Ids of a picture, and its rows: the same wherever it stands. */
function picture(index: number): { ids: number[]; rows: number[] } {
  const random = randomNumbers(900 + index);
  const count = PICTURES[index % PICTURES.length]!;
  return {
    ids: Array.from({ length: count }, () => DRAWN_WITH.vocabSize + Math.floor(random() * 2 ** 30)),
    rows: Array.from({ length: count * DRAWN_WITH.width }, () => 4 * random() - 2),
  };
}

/** Prompts with up to three pictures and texts between them. Those of every third request begin alike, and some differ in a later picture. */
function scenario(): Arrival[] {
  return Array.from({ length: REQUESTS }, (_, i) => {
    const random = randomNumbers(40 + (i % 3));
    const text = () =>
      Array.from({ length: 2 + Math.floor(random() * 9) }, () => 3 + Math.floor(random() * 90));
    const ids: number[] = i % 4 === 3 ? [] : text();
    const rows: number[] = [];
    const grids: number[] = [];
    for (const one of [i % 3, (i % 3) + (i > 5 ? 1 : 2), 4].slice(0, i % 5 === 4 ? 0 : 1 + (i % 3))) {
      const { ids: own, rows: more } = picture(one);
      grids.push(ids.length, 1, own.length);
      ids.push(...own);
      rows.push(...more);
      if (i !== 7) ids.push(...text());
    }
    if (ids.length === 0) ids.push(...text());
    const inputs: Record<string, Tensor> = {
      input_ids: { shape: [1, ids.length], data: Int32Array.from(ids) },
      request_output_len: { shape: [1], data: Int32Array.of(NEW_TOKENS - (i % 4)) },
      random_seed: { shape: [1], data: BigUint64Array.of(BigInt(i)) },
      return_log_probs: { shape: [1], data: Uint8Array.of(1) },
      ...(i % 2 === 1 && { temperature: { shape: [1], data: Float32Array.of(0.9) } }),
      ...(rows.length > 0 && {
        prompt_embedding_table: {
          shape: [rows.length / DRAWN_WITH.width, DRAWN_WITH.width],
          data: Float32Array.from(rows),
        },
        image_grids: { shape: [grids.length / 3, 3], data: Int32Array.from(grids) },
      }),
    };
    return { iteration: i, request: { requestId: BigInt(i + 1), inputs } satisfies InferenceRequest };
  });
}

const open = (on = NATIVE, options: TestExecutorOptions = {}): Promise<Executor> =>
  on.open(
    nativeEngine(engine),
    engineOptions(engine, {
      ...{ threads: 2, maxSeqLen: MAX_SEQ_LEN, tokensPerBlock: TOKENS_PER_BLOCK },
      // With blocks for the padding of V1.
      ...{ numBlocks: 2 * WIDE_POOL, maxNumTokens: 256, maxNumSequences: REQUESTS, maxLogitRows: REQUESTS },
      ...options,
    }),
  );

const reuse = true;
const RUNS: { name: string; options: RunOptions; pauses?: true }[] = [
  { name: 'in a crowd', options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 256, false) },
  { name: 'in chunks', options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, FEW_TOKENS, true) },
  {
    name: 'in chunks in turns, from the cache',
    options: {
      ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, FEW_TOKENS, true),
      ...{ reuse, chunkingPolicy: 'EQUAL_PROGRESS' as const },
    },
  },
  {
    name: 'the shortest first, from the cache, in two micro-batches',
    options: {
      ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, FEW_TOKENS, true),
      ...{ reuse, overlap: true, chunkingPolicy: 'SHORTEST_FIRST' as const },
    },
  },
  {
    name: 'paused',
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, FEW_TOKENS, true),
    pauses: true,
  },
  {
    name: 'paused, from the cache',
    options: { ...runOptions('MAX_UTILIZATION', SMALL_POOL, FEW_TOKENS, true), reuse },
    pauses: true,
  },
  {
    name: 'in a padded batch, from the cache',
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 256, false), reuse, modelType: 'V1' },
  },
];

function answersOf(executor: Executor, options: RunOptions): ReturnType<typeof runLoop> {
  return runLoop(executor, engine.manifest.config, scenario(), options);
}

function expectComplete(answers: Map<bigint, Answer>): void {
  for (const [id, { error, tokens }] of answers) {
    expect(error).toBe('');
    expect(tokens).toHaveLength(NEW_TOKENS - (Number(id - 1n) % 4));
  }
}

describe('an answer to pictures that attend both ways is the same', () => {
  let executor: Executor;
  let alone: Map<bigint, Answer>;
  beforeAll(async () => {
    executor = await open();
    alone = runAlone(executor, engine.manifest.config, scenario());
    expectComplete(alone);
  });
  afterAll(() => executor.close());

  it.each(RUNS)('$name', ({ options, pauses }) => {
    const result = answersOf(executor, options);
    expect(result.answers).toEqual(alone);
    expect(result.replayMismatches).toBe(0);
    if (options.reuse) expect(result.reusedTokens).toBeGreaterThan(0);
    if (pauses) expect(result.pauses).toBeGreaterThan(0);
    if (options.overlap) expect(result.overlapped).toBeGreaterThan(0);
  });

  it.each([RUNS[1]!, RUNS[5]!])('with drafts, $name', async ({ options }) => {
    const drafting = await open(NATIVE, { maxLogitRows: REQUESTS + DRAFT_ROWS });
    const prompts = scenario().map(({ request }) => request.inputs.input_ids!.data as Int32Array);
    const answerOf = (id: bigint) => [...prompts[Number(id) - 1]!, ...alone.get(id)!.tokens];
    const policy = new RandomDrafts(17, DRAWN_WITH.vocabSize, answerOf);
    const result = answersOf(drafting, { ...options, drafts: { policy, rows: DRAFT_ROWS } });
    drafting.close();
    expect(result.answers).toEqual(alone);
    expect(policy.accepted).toBeGreaterThan(20);
    expect(policy.drafted - policy.accepted).toBeGreaterThan(20);
  });

  it('and another one where tokens of pictures attend only to those before them', () => {
    const causal = scenario().map(({ iteration, request }) => {
      const { image_grids: grids, ...inputs } = request.inputs;
      if (grids === undefined) return { iteration, request };
      // Ids that name the rows, as any own embeddings have them.
      let row = 0;
      const ids = Int32Array.from(inputs.input_ids!.data as Int32Array, (id) =>
        id < DRAWN_WITH.vocabSize ? id : DRAWN_WITH.vocabSize + row++,
      );
      const named = { ...inputs, input_ids: { ...inputs.input_ids!, data: ids } };
      return { iteration, request: { ...request, inputs: named } };
    });
    const others = runAlone(executor, engine.manifest.config, causal);
    for (const { request } of scenario()) {
      const { requestId } = request;
      const isText = request.inputs.image_grids === undefined;
      expect(others.get(requestId)!.logProbs.join() === alone.get(requestId)!.logProbs.join()).toBe(isText);
    }
  });

  it('over ranks', async () => {
    const ranked = await open(RANKS);
    expect(answersOf(ranked, RUNS[2]!.options).answers).toEqual(alone);
    ranked.close();
  });
});

it.each(instructionSets)('is the same in chunks with a cache of int8 on %s', async (instructionSet) => {
  const executor = await open(NATIVE, { instructionSet, kvDtype: 'int8' });
  const alone = runAlone(executor, engine.manifest.config, scenario());
  expectComplete(alone);
  expect(answersOf(executor, RUNS[2]!.options).answers).toEqual(alone);
  executor.close();
});

it('is the same in chunks on the wasm executor', async () => {
  const executor = await open(WASM, { threads: 1 });
  const alone = runAlone(executor, engine.manifest.config, scenario());
  expectComplete(alone);
  for (const index of [2, 5]) expect(answersOf(executor, RUNS[index]!.options).answers).toEqual(alone);
  executor.close();
});

it('is refused with the numbers where no iteration takes a picture', async () => {
  const executor = await open();
  const { answers } = answersOf(executor, runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 24, true));
  const refused = [...answers.values()].filter(({ error }) => error !== '');
  expect(refused.length).toBeGreaterThan(2);
  for (const { error } of refused)
    expect(error).toMatch(
      /The picture at place \d+ has (?:17|20) tokens, .* maxNumTokens = 24 there are 13 for them/,
    );
  executor.close();
});
