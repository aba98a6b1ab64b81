import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RopeTable } from '../../engine/batch/rope-table.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { LlmRequest } from '../../engine/request/llm-request.js';
import { HiddenRows } from '../../engine/speculation/hidden-rows.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { ropeFrequencies } from '../../network/rope.js';
import { KnownDrafts } from '../../tools/support/known-drafts.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { engineOptions, nativeEngine, openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { CountedSpeculation } from '../support/counted-speculation.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeHeadPath } from '../support/made-heads.js';
import { spoilModel } from '../support/spoilt-model.js';
import { type RunOptions, runAlone, runLoop } from './run-loop.js';
import { type Arrival, randomNumbers, randomScenario } from './scenario.js';

const REQUESTS = 16;
const DRAFT_ROWS = 24;
const DRAFT_LEN = 5;
const SIZES = { maxSeqLen: 160, tokensPerBlock: 16, numBlocks: 10 * REQUESTS };
/** Share of the drafted tokens that are right, as of a head that was trained; of random weights none would be. */
const RIGHT = 0.7;

const engines = new TestEngines();
afterAll(() => engines.remove());
const folder = temporaryFolder('skein-head-drafts');

const RUNS: { name: string; most: number; blocks: number; options: RunOptions }[] = [
  {
    name: 'together',
    most: 256,
    blocks: SIZES.numBlocks,
    options: {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: SIZES.numBlocks,
      maxNumTokens: 512,
      chunked: false,
    },
  },
  {
    name: 'maximal use, small pools, chunks, reuse, few rows kept',
    most: 2 * (DRAFT_LEN + 1),
    blocks: 20,
    options: {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 12,
      maxNumTokens: 64,
      chunked: true,
      reuse: true,
    },
  },
];

/** Requests without a penalty or a ban, whose drafts are what the head gives the most. */
const GREEDY = [101n, 102n];

function greedyArrival(requestId: bigint, vocabSize: number): Arrival {
  const random = randomNumbers(Number(requestId));
  const data = Int32Array.from({ length: 70 }, () => 3 + Math.floor(random() * (vocabSize - 3)));
  const inputs = {
    input_ids: { shape: [1, data.length], data },
    request_output_len: { shape: [1], data: Int32Array.of(60) },
    random_seed: { shape: [1], data: BigUint64Array.of(1n) },
    return_log_probs: { shape: [1], data: Uint8Array.of(1) },
  };
  return { iteration: 2, request: { requestId, inputs } };
}

/** Notes what the head itself has drawn first for greedy requests, before known tokens take its place. */
class WatchedDrafts extends KnownDrafts {
  readonly seen: { requestId: bigint; place: number; token: number }[] = [];

  override roundCost(): number {
    return 0;
  }

  override readingCost(): number {
    return 0;
  }

  protected override replace(request: LlmRequest): void {
    const { requestId, numTokens, draftLength, tokens } = request;
    if (draftLength > 0) this.seen.push({ requestId, place: numTokens, token: tokens[numTokens]! });
    super.replace(request);
  }
}

describe.each(['qwen3.5', 'qwen3.5-moe'])('drafts of the head of tiny %s', (name) => {
  it('change no bit of an answer, and are those that it makes of the whole sequence', async () => {
    const engine = await engines.get(madeHeadPath(folder, name), 'bf16', true);
    const { config } = engine.manifest;
    const head = engine.plan.head!;
    const loadable = { ...nativeEngine(engine), plan: head };
    const states = { numStateSlots: 2 * REQUESTS, numDraftSlots: 2 * REQUESTS, stateDraftRows: DRAFT_LEN };
    const limits = { maxNumTokens: 512, maxNumSequences: REQUESTS, maxLogitRows: REQUESTS + DRAFT_ROWS };
    const executor = openExecutor(engine, { ...SIZES, ...limits, ...states });
    const rounds = { maxNumTokens: 40, maxNumSequences: DRAFT_ROWS, maxLogitRows: DRAFT_ROWS };
    const headOptions = engineOptions({ ...engine, plan: head }, { ...SIZES, ...rounds });
    const headExecutor = new NativeExecutor(loadable, headOptions);
    const lengths = { requests: REQUESTS, maxPrompt: 90, maxNew: 60, arrivalSpan: 10 };
    const { vocabSize } = config;
    const random = randomScenario({ vocabSize, sharedPrompts: true, ...lengths, seed: 9 });
    const arrivals = [...GREEDY.map((id) => greedyArrival(id, vocabSize)), ...random.slice(GREEDY.length)];
    // Without the head in the engine the answers are the same.
    const bare = openExecutor(await engines.get(madeHeadPath(folder, name), 'bf16'), {
      ...SIZES,
      ...limits,
      ...states,
    });
    const alone = runAlone(bare, config, arrivals);
    bare.close();
    let now = 0;
    for (const { most, blocks, options } of RUNS) {
      const kvCache = new KvCacheManager({ ...SIZES, numBlocks: blocks });
      const hidden = new HiddenRows(config.hiddenSize, most);
      const parts = {
        executor: headExecutor,
        kvCache,
        rope: new RopeTable(ropeFrequencies(config.rope), null, REQUESTS),
        costShare: 0,
        clock: () => ++now,
        hidden,
        onFailure: (error: Error) => {
          throw error;
        },
      };
      const known = ({ requestId }: LlmRequest) => alone.get(requestId)!.tokens;
      const draftModel = new WatchedDrafts(parts, known, RIGHT, randomNumbers(5));
      const policy = new CountedSpeculation({
        usesNgrams: false,
        draftModel,
        maxDraftLen: DRAFT_LEN,
        maxRows: 64,
      });
      const result = runLoop(executor, config, arrivals, {
        ...options,
        drafts: { policy, rows: DRAFT_ROWS },
      });
      expect(result.answers).toEqual(alone);
      expect(result.replayMismatches).toBe(0);
      expect(kvCache.freeBlocks).toBe(blocks);
      expect(hidden.size).toBe(0);
      expect(policy.drafted).toBeGreaterThan(40);
      expect(policy.accepted / policy.drafted).toBeGreaterThan(0.3);
      if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(0);
      else expectOwnGuesses(draftModel.seen);
    }

    /** Each first token of a draft is the most probable one that the head makes of all tokens before it, read at once. */
    function expectOwnGuesses(seen: WatchedDrafts['seen']): void {
      const greedy = arrivals.filter(({ request: { requestId } }) => GREEDY.includes(requestId));
      const guesses = greedy.map(({ request }) => {
        const prompt = [...(request.inputs.input_ids!.data as Int32Array)];
        return [request.requestId, guessesOf([...prompt, ...alone.get(request.requestId)!.tokens])] as const;
      });
      const byRequest = new Map(guesses);
      const own = seen.filter(({ requestId }) => byRequest.has(requestId));
      expect(own.length).toBeGreaterThan(15);
      for (const { requestId, place, token } of own)
        expect(token, `request ${requestId}, place ${place}`).toBe(byRequest.get(requestId)![place]);
    }

    /** By place: the token that the head guesses for it. */
    function guessesOf(tokens: number[]): number[] {
      const { inverseFrequencies } = ropeFrequencies(config.rope);
      const blocks = Array.from({ length: 10 }, (_, i) => i);
      const step = { tokensPerBlock: SIZES.tokensPerBlock, inverseFrequencies, newBlocks: blocks };
      const whole = makeStepBatch([{ tokens, cached: 0, blocks, stateSlot: 0 }], step);
      const rows = new Float32Array(tokens.length * config.hiddenSize);
      executor.forward({ ...whole, keptRows: rows });
      const reader = new NativeExecutor(loadable, { ...headOptions, maxNumTokens: 160, maxLogitRows: 160 });
      const read = makeStepBatch([{ tokens: tokens.slice(1), cached: 0, blocks, logits: 'all' }], step);
      const logits = reader.forward({ ...read, rowInputs: rows });
      const guesses: number[] = [];
      for (let row = 0; row < tokens.length - 1; row++) {
        const own = logits.subarray(row * vocabSize, (row + 1) * vocabSize);
        guesses[row + 2] = own.indexOf(Math.max(...own));
      }
      reader.close();
      return guesses;
    }
    headExecutor.close();
    executor.close();
  });
});

it('a head whose numbers are not finite ends drafting with one report, and fails no request', async () => {
  const spoil = { tensor: 'mtp.layers.0.mlp.down_proj.weight', row: 3, value: Number.NaN };
  const source = spoilModel(madeHeadPath(folder, 'qwen3.5'), join(folder, 'spoilt'), spoil);
  const engine = await engines.get(source, 'f32', true);
  const { config } = engine.manifest;
  const plan = engine.plan.head!;
  const states = { numStateSlots: 12, numDraftSlots: 12, stateDraftRows: DRAFT_LEN };
  const executor = openExecutor(engine, {
    ...SIZES,
    maxNumSequences: 6,
    maxLogitRows: 6 + DRAFT_ROWS,
    ...states,
  });
  const rounds = { ...SIZES, maxNumSequences: 6, maxLogitRows: 6 };
  const headExecutor = new NativeExecutor(
    { ...nativeEngine(engine), plan },
    engineOptions({ ...engine, plan }, rounds),
  );
  const lengths = { requests: 6, maxPrompt: 40, maxNew: 20, arrivalSpan: 3 };
  const arrivals = randomScenario({ vocabSize: config.vocabSize, ...lengths, seed: 3 });
  const reports: string[] = [];
  const hidden = new HiddenRows(config.hiddenSize, 32);
  const draftModel = new WatchedDrafts(
    {
      executor: headExecutor,
      kvCache: new KvCacheManager(SIZES),
      rope: new RopeTable(ropeFrequencies(config.rope), null, 6),
      costShare: 0,
      clock: () => 0,
      hidden,
      onFailure: ({ message }) => reports.push(message),
    },
    () => undefined,
    0,
    () => 0,
  );
  const policy = new CountedSpeculation({
    usesNgrams: false,
    draftModel,
    maxDraftLen: DRAFT_LEN,
    maxRows: 64,
  });
  const { options } = RUNS[0]!;
  const { answers } = runLoop(executor, config, arrivals, {
    ...options,
    drafts: { policy, rows: DRAFT_ROWS },
  });
  expect(reports).toEqual([
    "The model's head that drafts failed and drafts no more; requests go on without it: what it made of finite numbers is not finite (NaN or infinity).",
  ]);
  expect([policy.drafted, policy.keptWidth, hidden.size]).toEqual([0, 0, 0]);
  expect(answers).toEqual(runAlone(executor, config, arrivals));
  for (const { error } of answers.values()) expect(error).toBe('');
  headExecutor.close();
  executor.close();
});
