import { afterAll, describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { Executor } from '../../engine/executors/executor.js';
import type { ModelConfig } from '../../models/model-config.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  engineOptions,
  type Format,
  INT8_CACHE,
  nativeEngine,
  precisionOf,
  TestEngines,
  type TestExecutorOptions,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { NATIVE, RANKS, WASM } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { isMade, madeModelPath } from '../support/made-models.js';
import { instructionSets } from '../support/native-options.js';
import { RandomDrafts } from '../support/random-drafts.js';
import { type Answer, type RunOptions, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, expectAllowedLength, randomNumbers, randomScenario } from './scenario.js';

const REQUESTS = 24;
const DRAFT_ROWS = 40;
const MAX_SEQ_LEN = 160;
const TOKENS_PER_BLOCK = 16;
const WIDE_POOL = 10 * REQUESTS;
/** Blocks for one sequence of MAX_SEQ_LEN and hardly more. */
const SMALL_POOL = 12;
const MIDDLE_POOL = 18;

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Of families whose layers keep states. */
const STATEFUL = ['qwen3.5', 'lfm2', 'mamba2'];
/** Half of the slots are for snapshots. */
const STATE_OPTIONS = { numStateSlots: 2 * REQUESTS, numDraftSlots: REQUESTS, stateDraftRows: 12 };

const folder = temporaryFolder('skein-drafts');
const pathOf = (variant: string) =>
  isMade(variant) ? madeModelPath(folder, variant) : tinyModelPath(variant);

const RUNS: { name: string; options: RunOptions }[] = [
  { name: 'together', options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false) },
  {
    name: 'small pool, chunked, reuse',
    options: { ...runOptions('GUARANTEED_NO_EVICT', SMALL_POOL, 64, true), reuse: true },
  },
  { name: 'maximal use, small pool', options: runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false) },
  {
    name: 'maximal use, small pool, chunked, reuse, contexts and generation apart',
    options: {
      ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true),
      reuse: true,
      modelType: 'InflightBatching',
    },
  },
  {
    name: 'two micro-batches in turns, maximal use, small pool, reuse',
    options: { ...runOptions('MAX_UTILIZATION', MIDDLE_POOL, 64, true), reuse: true, overlap: true },
  },
];

function scenario(vocabSize: number): Arrival[] {
  const lengths = { requests: REQUESTS, maxPrompt: 90, maxNew: 60, arrivalSpan: 10 };
  const arrivals = randomScenario({ vocabSize, sharedPrompts: true, ...lengths, seed: 4 });
  for (const [i, { request }] of arrivals.entries()) if (i % 3 === 0) addDraft(request.inputs, vocabSize, i);
  return arrivals;
}

/** A draft and what it was drawn from: tokens there are drawn against it, in whatever step that is. */
function addDraft(inputs: InferenceRequest['inputs'], vocabSize: number, seed: number): void {
  const random = randomNumbers(seed);
  const length = 20;
  const tokens = Int32Array.from({ length }, () => Math.floor(random() * vocabSize));
  const data = Float32Array.from({ length: length * vocabSize }, () => 3 * random());
  inputs.draft_input_ids = { shape: [length], data: tokens };
  inputs.draft_logits = { shape: [length, vocabSize], data };
}

async function open(
  variant: string,
  format: Format,
  options: TestExecutorOptions,
  on = NATIVE,
): Promise<{ executor: Executor; config: ModelConfig }> {
  const engine = await engines.get(pathOf(variant), precisionOf(format));
  const sizes = engineOptions(engine, {
    threads: 2,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: TOKENS_PER_BLOCK,
    numBlocks: WIDE_POOL,
    maxNumTokens: 512,
    maxNumSequences: REQUESTS,
    maxLogitRows: REQUESTS + DRAFT_ROWS,
    ...cacheOf(format),
    ...options,
  });
  const executor = await on.open(nativeEngine(engine), sizes);
  return { executor, config: engine.manifest.config };
}

/** Runs with drafts, some of which are right to the end; fails unless every answer is the one without drafts. */
function expectDraftsChangeNothing(
  { executor, config }: { executor: Executor; config: ModelConfig },
  alone: Map<bigint, Answer>,
  options: RunOptions,
): void {
  const arrivals = scenario(config.vocabSize);
  const promptOf = (id: bigint) => arrivals[Number(id) - 1]!.request.inputs.input_ids!.data as Int32Array;
  const answerOf = (id: bigint) => [...promptOf(id), ...alone.get(id)!.tokens];
  const policy = new RandomDrafts(17, config.vocabSize, answerOf);
  const result = runLoop(executor, config, arrivals, { ...options, drafts: { policy, rows: DRAFT_ROWS } });
  expect(result.answers).toEqual(alone);
  expect(result.replayMismatches).toBe(0);
  expect(policy.accepted).toBeGreaterThan(50);
  expect(policy.drafted - policy.accepted).toBeGreaterThan(50);
  expect(policy.wholeDrafts).toBeGreaterThan(20);
  if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(0);
  if (options.overlap) expect(result.overlapped).toBeGreaterThan(10);
}

describe.each(instructionSets)('on %s, drafts change no bit of an answer', (instructionSet) => {
  const isBest = instructionSet === BEST_INSTRUCTION_SET;
  const formats: Format[] = ['f32', 'bf16', 'int8', 'int4', ...(isBest ? ([INT8_CACHE] as const) : [])];
  it.each(formats)('%s', async (precision) => {
    const opened = await open('gqa', precision, { instructionSet });
    const { executor, config } = opened;
    const arrivals = scenario(config.vocabSize);
    const alone = runAlone(executor, config, arrivals);
    for (const { request } of arrivals) {
      expectAllowedLength(request, alone.get(request.requestId)!.tokens.length);
    }
    // A schedule depends neither on the instruction set nor on the format: each of the runs in two formats or more.
    const first = formats.indexOf(precision);
    const runs = [RUNS[first]!, ...(isBest ? [RUNS[(first + 2) % 5]!] : [])];
    for (const { options } of runs) expectDraftsChangeNothing(opened, alone, options);
    executor.close();
  });
});

describe('drafts change no bit of an answer', () => {
  it.each(['bias', 'wide-head', 'longrope', 'mha', 'gemma3', 'gemma4', 'gpt-oss-clamped'])(
    'of tiny %s',
    async (variant) => {
      const opened = await open(variant, 'bf16', {});
      const alone = runAlone(opened.executor, opened.config, scenario(opened.config.vocabSize));
      for (const { options } of [RUNS[1]!, RUNS[4]!]) expectDraftsChangeNothing(opened, alone, options);
      opened.executor.close();
    },
  );

  // The states of a sequence go back to its last token that was right.
  it.each(STATEFUL)('of tiny %s, whose layers keep states', async (variant) => {
    for (const format of ['f32', 'int8'] as const) {
      const opened = await open(variant, format, STATE_OPTIONS);
      const alone = runAlone(opened.executor, opened.config, scenario(opened.config.vocabSize));
      // Answers of the tiny LFM2 are too short for pauses.
      const runs = RUNS.filter(
        ({ options }) => variant !== 'lfm2' || options.schedulerPolicy !== 'MAX_UTILIZATION',
      );
      for (const { options } of runs) expectDraftsChangeNothing(opened, alone, options);
      opened.executor.close();
    }
  });

  it.each([WASM, RANKS])('of tiny qwen3.5 on $name', async (on) => {
    const opened = await open('qwen3.5', 'f32', STATE_OPTIONS, on);
    const alone = runAlone(opened.executor, opened.config, scenario(opened.config.vocabSize));
    for (const { options } of [RUNS[1]!, RUNS[4]!]) expectDraftsChangeNothing(opened, alone, options);
    opened.executor.close();
  });

  // 6 blocks a sequence: one with its sinks, and 5 that take turns over 79 tokens; a draft may write over one of them.
  it('in a window whose blocks take turns', async () => {
    const opened = await open('gqa', 'bf16', { maxAttentionWindow: 85, sinkTokenLength: 6 });
    const alone = runAlone(opened.executor, opened.config, scenario(opened.config.vocabSize));
    for (const { options } of RUNS) expectDraftsChangeNothing(opened, alone, options);
    opened.executor.close();
  });
});
