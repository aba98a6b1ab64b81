import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  type Format,
  INSTRUCTION_SETS,
  INT8_CACHE,
  openExecutor,
  precisionOf,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_MODELS, writeMadeModel } from '../support/made-models.js';
import { type Answer, type RunOptions, type RunResult, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, expectAllowedLength, randomScenario } from './scenario.js';

const PRECISIONS: readonly WeightPrecision[] = ['f32', 'bf16', 'int8', 'int4'];
const REQUESTS = 32;
const MAX_SEQ_LEN = 160;
const TOKENS_PER_BLOCK = 16;
/** Every request has room. */
const WIDE_POOL = 320;
/** After the widest pool: what V1 pads with. */
const PADDING_BLOCKS = 512 / TOKENS_PER_BLOCK + 2 * REQUESTS;
/** Two sequences of MAX_SEQ_LEN and a little more. */
const SMALL_POOL = 24;
/** Blocks for one sequence of MAX_SEQ_LEN and hardly more. */
const TINY_POOL = 11;
const SECONDARY_BLOCKS = 40;

const folder = temporaryFolder('skein-bitwise');
const engines = new TestEngines();
afterAll(() => engines.remove());

const RUNS: { name: string; threads: number; options: RunOptions }[] = [
  { name: 'together', threads: 1, options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false) },
  { name: 'together, chunked', threads: 2, options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 64, true) },
  {
    name: 'together, small pool',
    threads: 2,
    options: runOptions('GUARANTEED_NO_EVICT', SMALL_POOL, 512, false),
  },
  { name: 'maximal use', threads: 8, options: runOptions('MAX_UTILIZATION', WIDE_POOL, 512, false) },
  {
    name: 'maximal use, small pool',
    threads: 2,
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false),
  },
  {
    name: 'maximal use, small pool, chunked',
    threads: 3,
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true),
  },
  {
    name: 'chunked by time',
    threads: 2,
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, true), maxInterTokenLatencyMs: 2 },
  },
  {
    name: 'chunked by time, in turns, paused',
    threads: 3,
    options: {
      ...runOptions('MAX_UTILIZATION', SMALL_POOL, 512, true),
      overlap: true,
      maxInterTokenLatencyMs: 0.001,
    },
  },
  {
    name: 'shortest prompts first',
    threads: 2,
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 64, true), chunkingPolicy: 'SHORTEST_FIRST' },
  },
  {
    name: 'shortest prompts first, long ones in the smallest chunks, paused',
    threads: 2,
    options: {
      ...runOptions('MAX_UTILIZATION', TINY_POOL, 512, true),
      chunkingPolicy: 'SHORTEST_FIRST',
      maxChunkMs: 0.001,
    },
  },
  {
    name: 'contexts and generation apart, small pool, chunked',
    threads: 2,
    options: { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), modelType: 'InflightBatching' },
  },
  {
    name: 'two micro-batches in turns',
    threads: 2,
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false), overlap: true },
  },
  {
    name: 'two micro-batches in turns, maximal use, small pool, chunked',
    threads: 2,
    options: { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), overlap: true },
  },
  {
    name: 'two micro-batches in turns, contexts and generation apart, small pool',
    threads: 1,
    options: {
      ...runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false),
      modelType: 'InflightBatching',
      overlap: true,
    },
  },
  {
    name: 'padded batches in lockstep',
    threads: 2,
    options: { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false), modelType: 'V1' },
  },
];

/**
 * A schedule depends neither on the instruction set nor on the precision: the best set runs each of them in one precision, other
 * sets every third, and every precision has some.
 */
const runsOf = (instructionSet: InstructionSet, precision: WeightPrecision) =>
  RUNS.filter(
    (_, i) => oneOf(PRECISIONS, i) === precision && (instructionSet === BEST_INSTRUCTION_SET || i % 3 === 2),
  );

function oneOf<T>(values: readonly T[], index: number): T {
  return values[index % values.length]!;
}

/** The values that a test takes on an instruction set: all on the best one, else one after the other. */
const sampleOf = <T>(values: readonly T[], instructionSet: InstructionSet): readonly T[] =>
  instructionSet === BEST_INSTRUCTION_SET
    ? values
    : [oneOf(values, INSTRUCTION_SETS.indexOf(instructionSet))];

/** Folder of a committed tiny model, or of one that is made here. */
function pathOf(variant: string): string {
  const made = MADE_MODELS.find(({ name }) => name === variant);
  return made === undefined ? tinyModelPath(variant) : writeMadeModel(join(folder, variant), made);
}

async function openTiny(
  variant: string,
  format: Format,
  threads: number,
  instructionSet = BEST_INSTRUCTION_SET,
) {
  const engine = await engines.get(pathOf(variant), precisionOf(format));
  const { slidingWindow } = engine.manifest.config;
  const executor = openExecutor(engine, {
    ...(slidingWindow === null ? {} : { maxAttentionWindow: slidingWindow }),
    ...cacheOf(format),
    instructionSet,
    threads,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: TOKENS_PER_BLOCK,
    numBlocks: WIDE_POOL + PADDING_BLOCKS,
    numSecondaryBlocks: SECONDARY_BLOCKS,
    maxNumTokens: 512,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: REQUESTS,
  });
  return { executor, config: engine.manifest.config };
}

function scenario(vocabSize: number): Arrival[] {
  return randomScenario({
    vocabSize,
    requests: REQUESTS,
    maxPrompt: 40,
    maxNew: 110,
    arrivalSpan: 40,
    seed: 42,
    returnsLogits: true,
  });
}

/** === on every token and on every bit of every log-prob. */
function expectSameAnswers(result: RunResult, alone: Map<bigint, Answer>): void {
  expect(result.answers.size).toBe(alone.size);
  for (const [requestId, expected] of alone) {
    const found = result.answers.get(requestId)!;
    expect(found.error, `request ${requestId}`).toBe('');
    expect(found.tokens, `tokens of request ${requestId}`).toStrictEqual(expected.tokens);
    expect(found.logProbs, `log-probs of request ${requestId}`).toStrictEqual(expected.logProbs);
    expectSameLogits(found, expected, requestId);
  }
  expect(result.replayMismatches).toBe(0);
}

const bytesOf = (array: Float32Array | null) =>
  array && Buffer.from(array.buffer, array.byteOffset, array.byteLength);

/** Compared as bytes: arrays of this size are too many for one matcher each. */
function expectSameLogits(found: Answer, expected: Answer, requestId: bigint): void {
  for (const name of ['contextLogits', 'contextLogProbs'] as const) {
    const same = bytesOf(found[name])?.equals(bytesOf(expected[name])!) ?? expected[name] === null;
    expect(same, `${name} of request ${requestId}`).toBe(true);
  }
  const same = Buffer.from(Float32Array.from(found.generationLogits).buffer).equals(
    Buffer.from(Float32Array.from(expected.generationLogits).buffer),
  );
  expect(same, `generation logits of request ${requestId}`).toBe(true);
}

/** Rows are there exactly where they were asked for. */
function expectReturned({ inputs }: Arrival['request'], answer: Answer, vocabSize: number): void {
  const promptLength = inputs.input_ids!.data.length;
  const numRows = inputs.return_context_logits ? promptLength : 0;
  expect(answer.contextLogits?.length ?? 0).toBe(numRows * vocabSize);
  const numLogProbs = inputs.return_context_log_probs ? promptLength - 1 : 0;
  expect(answer.contextLogProbs?.length ?? 0).toBe(numLogProbs);
  const numGenerated = inputs.return_generation_logits ? answer.tokens.length : 0;
  expect(answer.generationLogits.length).toBe(numGenerated * vocabSize);
}

describe.each(INSTRUCTION_SETS)('on %s, 32 requests together answer as each alone', (instructionSet) => {
  describe.each(PRECISIONS)('%s', (precision) => {
    let alone: Map<bigint, Answer>;

    it('alone: every request gets as many tokens as it asked for', async () => {
      const { executor, config } = await openTiny('gqa', precision, 1, instructionSet);
      const arrivals = scenario(config.vocabSize);
      alone = runAlone(executor, config, arrivals);
      executor.close();
      for (const { request } of arrivals) {
        const answer = alone.get(request.requestId)!;
        expect(answer.error).toBe('');
        expectAllowedLength(request, answer.tokens.length);
        expect(answer.logProbs.length).toBe(answer.tokens.length);
        expect(answer.logProbs.every((logProb) => logProb <= 0)).toBe(true);
        expectReturned(request, answer, config.vocabSize);
      }
    });

    it.each(runsOf(instructionSet, precision))('$name, $threads threads', async ({ threads, options }) => {
      const { executor, config } = await openTiny('gqa', precision, threads, instructionSet);
      const result = runLoop(executor, config, scenario(config.vocabSize), options);
      executor.close();
      expectSameAnswers(result, alone);
      if (options.modelType === 'V1') expect(result.emptyGenerationSlots).toBeGreaterThan(100);
      else if (options.numBlocks === WIDE_POOL) {
        expect(result.greatestBatch).toBeGreaterThan(options.overlap ? 8 : 16);
      }
      if (options.overlap) expect(result.overlapped).toBeGreaterThan(30);
      else expect(result.overlapped).toBe(0);
      if (options.schedulerPolicy === 'MAX_UTILIZATION' && options.numBlocks !== WIDE_POOL) {
        expect(result.pauses).toBeGreaterThan(10);
      } else {
        expect(result.pauses).toBe(0);
      }
    });
  });
});

// Sizes that no tile divides, biases, and frequencies that depend on each request's final length.
describe.each<[string, Format[]]>([
  ['bias', ['int8', 'f32']],
  ['wide-head', ['bf16', INT8_CACHE]],
  ['longrope', ['f32', 'int8']],
  ['mha', ['int4', 'bf16']],
])('tiny %s', (variant, formats) => {
  it.each(formats)(
    '%s: together as alone, paused and chunked in two micro-batches, in lockstep',
    async (format) => {
      const { executor, config } = await openTiny(variant, format, 2);
      const arrivals = scenario(config.vocabSize);
      const alone = runAlone(executor, config, arrivals);
      const turns = { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), overlap: true };
      const paused = runLoop(executor, config, arrivals, turns);
      expectSameAnswers(paused, alone);
      expect(paused.pauses).toBeGreaterThan(10);
      expect(paused.overlapped).toBeGreaterThan(30);
      if (format === formats[0]) {
        const v1 = runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false);
        const lockstep = runLoop(executor, config, arrivals, { ...v1, modelType: 'V1' });
        expectSameAnswers(lockstep, alone);
        expect(lockstep.emptyGenerationSlots).toBeGreaterThan(100);
      }
      executor.close();
    },
  );
});

// A row for each kind of network; FAMILIES has the families that differ less.
describe.each<[string, Format, number]>([
  ['mistral', 'bf16', 5],
  ['qwen2', 'int8', 16],
  ['qwen3', 'bf16', 16],
  ['phi3', 'int4', 9],
  ['gemma2', 'bf16', 16],
  ['gemma2', INT8_CACHE, 16],
  ['gemma3', 'int8', 16],
  ['gpt2', 'bf16', 16],
  ['qwen3moe', 'bf16', 16],
  ['qwen3moe', 'int4', 16],
  ['mixtral', 'int8', 9],
  ['smollm3', 'bf16', 16],
  ['olmo3', 'int8', 16],
  ['glm4', 'int4', 16],
  ['nemotron-bias', 'bf16', 16],
  ['command-r-plus', 'int8', 16],
  ['hunyuan', 'bf16', 16],
  ['apertus', 'int8', 16],
  ['lfm2', 'int8', 16],
  ['qwen3.5', 'bf16', 16],
  ['qwen3.5-moe', 'int8', 16],
  ['lfm2-moe', 'bf16', 16],
  ['glm4.5', 'int8', 16],
  ['gpt-oss-clamped', 'bf16', 16],
  ['phi-moe-near', 'int8', 16],
  ['gemma4', 'int8', 16],
])('tiny %s, %s', (variant, format, smallPool) => {
  it('together as alone: paused, chunked, in lockstep, from reused blocks', async () => {
    const { executor, config } = await openTiny(variant, format, 2);
    const lengths = { requests: 14, maxPrompt: 80, maxNew: 40, arrivalSpan: 20 };
    const arrivals = randomScenario({
      ...config,
      ...lengths,
      sharedPrompts: true,
      returnsLogits: true,
      seed: 9,
    });
    const alone = runAlone(executor, config, arrivals);
    const small = { ...runOptions('MAX_UTILIZATION', smallPool, 48, true), reuse: true };
    const wide = runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false);
    const paused = runLoop(executor, config, arrivals, small);
    const reusing = runLoop(executor, config, arrivals, { ...wide, reuse: true });
    const lockstep = runLoop(executor, config, arrivals, { ...wide, modelType: 'V1' });
    executor.close();
    for (const result of [paused, reusing, lockstep]) expectSameAnswers(result, alone);
    // In a window blocks take turns: a sequence that runs needs no more of them, and leaves none as they
    // were.
    if (config.slidingWindow === null) {
      expect(paused.pauses).toBeGreaterThan(2);
      expect(reusing.reusedTokens).toBeGreaterThan(50);
    }
    expect(lockstep.emptyGenerationSlots).toBeGreaterThan(20);
  });
});

const FAMILIES: [string, Format][] = [
  ['gemma', 'int8'],
  ['olmo2', 'bf16'],
  ['exaone4', 'int4'],
  ['granite', 'int8'],
  ['granite4', 'bf16'],
  ['cohere', 'bf16'],
  ['cohere2', 'int8'],
  ['glm', 'bf16'],
  ['ministral', 'int8'],
  ['ministral3', 'bf16'],
  ['seed-oss', 'int4'],
  ['ernie4.5-bias', 'bf16'],
  ['arcee', 'int8'],
  ['nemotron', 'int4'],
  ['minicpm', 'bf16'],
  ['phi4-mini', 'int8'],
  ['llama-partial', 'bf16'],
  ['dynamic', 'bf16'],
  ['qwen2-moe', 'bf16'],
  ['olmoe', 'int4'],
  ['gpt-oss', 'int8'],
  ['phi-moe', 'bf16'],
  ['gemma4-mixture', 'bf16'],
  ['qwen3-next', 'bf16'],
  ['lfm2-moe-shares', 'int8'],
];
it.each(FAMILIES)('tiny %s, %s: together as alone, paused and chunked', async (variant, format) => {
  const { executor, config } = await openTiny(variant, format, 2);
  const lengths = { requests: 6, maxPrompt: 80, maxNew: 24, arrivalSpan: 6 };
  const arrivals = randomScenario({ ...config, ...lengths, returnsLogits: true, seed: 5 });
  const alone = runAlone(executor, config, arrivals);
  const together = runLoop(executor, config, arrivals, runOptions('MAX_UTILIZATION', TINY_POOL, 48, true));
  executor.close();
  expectSameAnswers(together, alone);
  expect(together.greatestBatch).toBeGreaterThan(2);
});

function promptsThatBeginAlike(vocabSize: number, seed: number) {
  const limits = { requests: REQUESTS, maxPrompt: 90, maxNew: 60, arrivalSpan: 60 };
  return randomScenario({ vocabSize, sharedPrompts: true, returnsLogits: true, ...limits, seed });
}

// Prompts that share beginnings of any length: blocks shared, copied in part, taken over, evicted, found after a pause.
async function expectReuseChangesNothing(
  variant: string,
  precision: WeightPrecision,
  instructionSet = BEST_INSTRUCTION_SET,
): Promise<void> {
  const { executor, config } = await openTiny(variant, precision, 2, instructionSet);
  const arrivals = promptsThatBeginAlike(config.vocabSize, 7);
  const alone = runAlone(executor, config, arrivals);
  const runs = [
    runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 64, true),
    runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false),
    runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 512, false),
    runOptions('GUARANTEED_NO_EVICT', SMALL_POOL, 512, false),
    runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true),
    { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true), modelType: 'InflightBatching' as const },
    { ...runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 64, true), overlap: true },
    { ...runOptions('MAX_UTILIZATION', SMALL_POOL, 512, false), overlap: true },
  ];
  // What is reused and when depends on lengths alone: one model does it in every way.
  const isInEveryWay = variant === 'gqa' && instructionSet === BEST_INSTRUCTION_SET;
  for (const options of isInEveryWay ? runs : runs.slice(0, 2)) {
    const result = runLoop(executor, config, arrivals, { ...options, reuse: true });
    expectSameAnswers(result, alone);
    // Frequencies that depend on a sequence's own length fit no other: nothing is shared.
    if (variant === 'longrope') expect(result.reusedTokens).toBe(0);
    else expect(result.reusedTokens).toBeGreaterThan(300);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(5);
    if (options.overlap) expect(result.overlapped).toBeGreaterThan(30);
  }
  executor.close();
}

// A pool so small that what one request leaves is swapped out for the next, and back for the one after: whole blocks,
// and beginnings of blocks copied from the secondary pool.
async function expectSwappingChangesNothing(
  variant: string,
  format: Format,
  instructionSet = BEST_INSTRUCTION_SET,
): Promise<void> {
  const isInEveryWay = variant === 'gqa' && format === 'bf16';
  const { executor, config } = await openTiny(variant, format, 2, instructionSet);
  const arrivals = promptsThatBeginAlike(config.vocabSize, 8);
  const alone = runAlone(executor, config, arrivals);
  const copies = vi.spyOn(executor, 'copyBlocks');
  const isSecondary = (block: number) => block >= TINY_POOL;
  let partsOfSwappedBlocks = 0;
  const runs = [
    [SECONDARY_BLOCKS, runOptions('GUARANTEED_NO_EVICT', TINY_POOL, 64, true)],
    [16, runOptions('MAX_UTILIZATION', TINY_POOL, 64, true)],
    [16, runOptions('GUARANTEED_NO_EVICT', TINY_POOL, 512, false)],
    [SECONDARY_BLOCKS, { ...runOptions('MAX_UTILIZATION', TINY_POOL, 512, false), overlap: true }],
  ] as const;
  // What is swapped and when depends on lengths alone: one model does it in every way.
  for (const [numSecondaryBlocks, options] of isInEveryWay ? runs : runs.slice(0, 2)) {
    const result = runLoop(executor, config, arrivals, { ...options, reuse: true, numSecondaryBlocks });
    expectSameAnswers(result, alone);
    expect(result.swappedInBlocks).toBeGreaterThan(10);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(5);
    const fromSecondary = copies.mock.calls.flatMap(([source]) => [...source]).filter(isSecondary).length;
    partsOfSwappedBlocks += fromSecondary - result.swappedInBlocks;
    copies.mockClear();
  }
  expect(partsOfSwappedBlocks).toBeGreaterThan(0);
  executor.close();
}

describe('with blocks swapped out and in, 32 requests together answer as each alone without reuse', () => {
  it.each(INSTRUCTION_SETS)('tiny gqa on %s', async (instructionSet) => {
    for (const precision of sampleOf(['bf16', INT8_CACHE] as const, instructionSet)) {
      await expectSwappingChangesNothing('gqa', precision, instructionSet);
    }
  });

  it.each(['bias', 'wide-head'])('tiny %s', async (variant) => {
    await expectSwappingChangesNothing(variant, 'bf16');
  });
});

describe('with block reuse, 32 requests together answer as each alone without it', () => {
  it.each(INSTRUCTION_SETS)('tiny gqa on %s', async (instructionSet) => {
    // Below, each precision has its own model.
    await expectReuseChangesNothing('gqa', 'bf16', instructionSet);
  });

  it.each([
    ['bias', 'int8'],
    ['wide-head', 'bf16'],
    ['longrope', 'f32'],
    ['mha', 'int4'],
  ] as const)('tiny %s, %s', async (variant, precision) => {
    await expectReuseChangesNothing(variant, precision);
  });
});
