import { afterAll, describe, expect, it } from 'vitest';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  type Format,
  INT8_CACHE,
  openExecutor,
  precisionOf,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { instructionSets } from '../support/native-options.js';
import { type Answer, type RunOptions, type RunResult, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const REQUESTS = 24;
const TOKENS_PER_BLOCK = 16;
const MAX_SEQ_LEN = 240;
/** A sequence holds 6 blocks at most: one with its sinks and 5 that take turns. */
const WINDOW = { maxAttentionWindow: 85, sinkTokenLength: 6 };
const WIDE_POOL = 6 * REQUESTS;
/** Two windows and a third; one sequence of MAX_SEQ_LEN would need 15 blocks without a window. */
const SMALL_POOL = 14;
const PADDING_BLOCKS = 512 / TOKENS_PER_BLOCK + 2 * REQUESTS;

const engines = new TestEngines();
afterAll(() => engines.remove());

async function open(
  variant: string,
  format: Format,
  options: Parameters<typeof openExecutor>[1],
): Promise<{ executor: NativeExecutor; run: (options: RunOptions) => RunResult; alone: () => Answers }> {
  const { manifest, ...engine } = await engines.get(tinyModelPath(variant), precisionOf(format));
  const executor = openExecutor(
    { manifest, ...engine },
    {
      ...WINDOW,
      ...cacheOf(format),
      maxSeqLen: MAX_SEQ_LEN,
      tokensPerBlock: TOKENS_PER_BLOCK,
      numBlocks: WIDE_POOL + PADDING_BLOCKS,
      maxNumTokens: 512,
      maxNumSequences: 2 * REQUESTS,
      maxLogitRows: REQUESTS,
      ...options,
    },
  );
  const arrivals = scenario(manifest.config.vocabSize);
  return {
    executor,
    run: (runOptions) => runLoop(executor, manifest.config, arrivals, runOptions),
    alone: () => runAlone(executor, manifest.config, arrivals),
  };
}

type Answers = Map<bigint, Answer>;

/** Prompts of up to 100 tokens and up to 130 more: most go around their window, some twice, some never. */
function scenario(vocabSize: number): Arrival[] {
  const lengths = { requests: REQUESTS, maxPrompt: 100, maxNew: 130, arrivalSpan: 40 };
  return randomScenario({ vocabSize, ...lengths, seed: 99, sharedPrompts: true });
}

const RUNS: { name: string; threads: number; options: RunOptions }[] = [
  { name: 'together', threads: 1, options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false) },
  { name: 'together, chunked', threads: 2, options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 64, true) },
  { name: 'small pool', threads: 3, options: runOptions('GUARANTEED_NO_EVICT', SMALL_POOL, 512, false) },
  {
    name: 'small pool, maximal use',
    threads: 2,
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false),
  },
  {
    name: 'small pool, maximal use, chunked',
    threads: 8,
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, 48, true),
  },
  {
    name: 'small pool, maximal use, chunked, with block reuse',
    threads: 2,
    options: { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), reuse: true },
  },
  {
    name: 'contexts and generation apart',
    threads: 2,
    options: { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), modelType: 'InflightBatching' },
  },
  {
    name: 'padded batches in lockstep',
    threads: 2,
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false), modelType: 'V1' },
  },
];

const PRECISIONS = ['f32', 'bf16'] as const;

/** Schedules depend neither on the instruction set nor on the precision: the best set runs each in one of them, other sets some. */
const runsOf = (instructionSet: InstructionSet, precision: (typeof PRECISIONS)[number]) =>
  RUNS.filter(
    (_, i) => precision === PRECISIONS[i % 2] && (instructionSet === BEST_INSTRUCTION_SET || i > 3),
  );

function expectSameAnswers(result: RunResult, alone: Answers): void {
  expect(result.answers.size).toBe(alone.size);
  for (const [requestId, expected] of alone) {
    expect(result.answers.get(requestId), `request ${requestId}`).toStrictEqual(expected);
  }
  expect(result.replayMismatches).toBe(0);
}

describe.each(instructionSets)('in an attention window with sinks, on %s', (instructionSet) => {
  describe.each(PRECISIONS)('%s', (precision) => {
    let alone: Answers;

    it('alone: the window changes answers of requests that are longer than it, and no others', async () => {
      const windowed = await open('gqa', precision, { threads: 1, instructionSet });
      alone = windowed.alone();
      windowed.executor.close();
      const whole = await open('gqa', precision, {
        threads: 1,
        instructionSet,
        maxAttentionWindow: MAX_SEQ_LEN,
        sinkTokenLength: 0,
        numBlocks: 15 * REQUESTS,
      });
      const answers = whole.alone();
      whole.executor.close();
      let changed = 0;
      for (const { request } of scenario(100)) {
        const answer = alone.get(request.requestId)!;
        expect(answer.error).toBe('');
        const length = request.inputs.input_ids!.data.length + answer.tokens.length;
        if (length <= WINDOW.maxAttentionWindow) {
          expect(answer).toStrictEqual(answers.get(request.requestId));
        } else if (answer.logProbs.join() !== answers.get(request.requestId)!.logProbs.join()) changed++;
      }
      expect(changed).toBeGreaterThan(REQUESTS / 3);
    });

    it.each(runsOf(instructionSet, precision))(
      '$name, $threads threads: each as alone',
      async ({ threads, options }) => {
        const { executor, run } = await open('gqa', precision, { threads, instructionSet });
        const result = run(options);
        executor.close();
        expectSameAnswers(result, alone);
        if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(5);
        if (options.reuse) expect(result.reusedTokens).toBeGreaterThan(0);
      },
    );
  });
});

describe.each([
  ['bias', 'bf16'],
  ['wide-head', 'bf16'],
  ['longrope', 'bf16'],
  ['mha', 'bf16'],
  ['gqa', INT8_CACHE],
  ['wide-head', INT8_CACHE],
] as const)('in an attention window, tiny %s in %s', (variant, format) => {
  it.each(format === INT8_CACHE ? [5] : variant === 'mha' ? [0] : [0, 5])(
    'with %i sinks, answers together, paused and chunked, as alone',
    async (sinkTokenLength) => {
      const window = { maxAttentionWindow: 40, sinkTokenLength, threads: 2 };
      const { executor, run, alone } = await open(variant, format, window);
      expectSameAnswers(run(runOptions('MAX_UTILIZATION', 7, 64, true)), alone());
      executor.close();
    },
  );
});
