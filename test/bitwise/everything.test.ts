import { afterAll, describe, expect, it } from 'vitest';
import type { LogitsPostProcessor } from '../../callbacks/logits-post-processor.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
import { encodeWordList } from '../../engine/decoding/stop-words.js';
import { text } from '../support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../support/test-engine.js';
import { type RunOptions, runAlone, runLoop } from './run-loop.js';
import { type Arrival, randomNumbers, randomScenario } from './scenario.js';

const REQUESTS = 32;
const MAX_SEQ_LEN = 160;
const SMALL_POOL = 24;
const WIDE_POOL = 256;
/** Behind the pool: what V1 pads with. */
const PADDING_BLOCKS = 512 / 16 + 2 * REQUESTS;

const engines = new TestEngines();
afterAll(() => engines.remove());

const dampen: LogitsPostProcessor = (_, logits, [tokens]) => {
  for (const token of tokens!.subarray(-8)) if (token < logits.length) logits[token]! -= 1.5;
};
const postProcessors = new PostProcessors(new Map(Object.entries({ dampen })));

async function openTiny(threads: number) {
  const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  const executor = openExecutor(engine, {
    threads,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: 16,
    numBlocks: WIDE_POOL + PADDING_BLOCKS,
    maxNumTokens: 512,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: REQUESTS,
  });
  return { executor, config: engine.manifest.config };
}

const one = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });
const row = (values: ArrayLike<number>): Tensor => ({
  shape: [1, values.length],
  data: Int32Array.from(values),
});

/** Every parameter that a request can have beside those of randomScenario, by chance and in any mix. */
function everything(vocabSize: number, hiddenSize: number, processes: boolean): Arrival[] {
  const limits = { requests: REQUESTS, maxPrompt: 60, maxNew: 70, arrivalSpan: 40, seed: 5 };
  const random = randomNumbers(77);
  const below = (end: number) => Math.floor(random() * end);
  const chance = (probability: number) => random() < probability;
  const tokens = (count: number) => Array.from({ length: count }, () => 3 + below(vocabSize - 3));
  const tables = [0, 1].map(() => Float32Array.from({ length: 3 * hiddenSize }, () => random() - 0.5));
  return randomScenario({ vocabSize, sharedPrompts: true, returnsLogits: true, ...limits }).map((arrival) => {
    const { request } = arrival;
    const prompt = Int32Array.from(request.inputs.input_ids!.data as Int32Array);
    const own: Record<string, Tensor> = {};
    if (chance(0.4)) {
      for (const place of [0, 1, prompt.length >> 1]) prompt[place % prompt.length] = vocabSize + below(3);
      own.prompt_embedding_table = { shape: [3, hiddenSize], data: tables[below(2)]! };
    }
    if (chance(0.3)) {
      const first = below(20);
      own.position_ids = row(prompt.map((_, i) => first + i + (i > 20 ? 5 : 0)));
    }
    if (chance(0.4)) own.top_log_probs = one([1, 5, 64, vocabSize][below(4)]!);
    if (chance(0.2)) own.top_context_log_probs = one([3, vocabSize][below(2)]!);
    if (chance(0.3)) own.no_repeat_ngram_size = one(2 + below(3));
    if (chance(0.3)) own.bad_words_list = encodeWordList([tokens(1), tokens(1), tokens(2), tokens(3)]);
    if (chance(0.2)) {
      const data = Float32Array.from({ length: vocabSize }, () => random() - 0.5);
      own.embedding_bias = { shape: [1, vocabSize], data };
    }
    if (chance(0.3)) {
      own.logit_bias_tokens = row(tokens(3));
      own.logit_bias = { shape: [1, 3], data: Float32Array.of(2, -3, -Infinity) };
    }
    if (processes && chance(0.2)) own.logits_post_processor_name = text('dampen');
    const inputs = { ...request.inputs, ...own, input_ids: row(prompt) };
    return { ...arrival, request: { ...request, inputs } satisfies InferenceRequest };
  });
}

function run(options: Partial<RunOptions>): RunOptions {
  const usual = { numBlocks: WIDE_POOL, maxNumTokens: 512, chunked: false, postProcessors };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, ...options };
}
const PAUSED = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: SMALL_POOL } as const;

const RUNS: [string, number, RunOptions][] = [
  ['together', 1, run({})],
  ['paused and chunked', 2, run({ ...PAUSED, maxNumTokens: 64, chunked: true })],
  [
    'paused and chunked, with block reuse',
    2,
    run({ ...PAUSED, maxNumTokens: 64, chunked: true, reuse: true }),
  ],
  ['contexts and generation apart, with block reuse', 8, run({ modelType: 'InflightBatching', reuse: true })],
  ['two micro-batches in turns, paused, with block reuse', 2, run({ ...PAUSED, overlap: true, reuse: true })],
  ['padded batches in lockstep', 2, run({ modelType: 'V1' })],
];

describe('a crowd of every parameter there is', () => {
  it.each(RUNS)('%s: each answers as alone, bit for bit', async (_, threads, options) => {
    const { executor, config } = await openTiny(threads);
    const arrivals = everything(config.vocabSize, config.hiddenSize, options.modelType !== 'V1');
    const alone = runAlone(executor, config, arrivals, { postProcessors });
    const { answers, pauses, replayMismatches, reusedTokens, overlapped } = runLoop(
      executor,
      config,
      arrivals,
      options,
    );
    executor.close();
    for (const { request } of arrivals) {
      const { requestId } = request;
      const found = answers.get(requestId)!;
      expect(found.error, `request ${requestId}`).toBe('');
      expect(found, `request ${requestId}`).toStrictEqual(alone.get(requestId));
      expect(found.tokens.every((token) => token < config.vocabSize)).toBe(true);
      const numTop = Number(request.inputs.top_log_probs?.data[0] ?? 0);
      expect(found.topTokens).toHaveLength(numTop * found.tokens.length);
    }
    expect(replayMismatches).toBe(0);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(5);
    if (options.reuse) expect(reusedTokens).toBeGreaterThan(50);
    if (options.overlap) expect(overlapped).toBeGreaterThan(20);
  });
});
