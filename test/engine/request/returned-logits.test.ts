import { describe, expect, it } from 'vitest';
import type { ModelType } from '../../../callbacks/gpt-manager-options.js';
import type { Tensor } from '../../../callbacks/types.js';
import {
  bool,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  tensorOf,
} from '../../../tools/support/loop-harness.js';
import { collectReturned, type Returned } from '../../support/returned-tensors.js';

const VOCAB = 100;
const PROMPT = Array.from({ length: 19 }, (_, i) => (7 * i + 3) % VOCAB);
const EVERYTHING = {
  return_context_logits: bool(true),
  return_generation_logits: bool(true),
  top_context_log_probs: i32(2),
};

function returnedOf(harness: LoopHarness, requestId: bigint): Returned {
  return collectReturned(harness.responses.filter((response) => response.requestId === requestId));
}

function ask(id: bigint, prompt: readonly number[], maxNew: number, inputs: Record<string, Tensor> = {}) {
  return makeRequest(id, prompt, maxNew, { ...EVERYTHING, ...inputs });
}

function run(options: HarnessOptions, ...requests: ReturnType<typeof ask>[]): LoopHarness {
  return new LoopHarness(options).run(...requests);
}

/** Whole prompt, whole answer, nothing next to it. */
const alone = (prompt: readonly number[], maxNew: number) =>
  returnedOf(run({}, ask(1n, prompt, maxNew, { streaming: bool(false) })), 1n);

describe('returned logits', () => {
  const expected = alone(PROMPT, 20);

  it('have a row for each prompt token and each generated one, and their log-probs', () => {
    expect(expected.contextLogits.length).toBe(PROMPT.length);
    expect(expected.generationLogits.length).toBe(20);
    expect(expected.generationLogits[0]).toEqual(expected.contextLogits.at(-1));
    expect(expected.contextLogProbs.length).toBe(PROMPT.length - 1);
    expect(expected.contextTopTokens.length).toBe(2 * (PROMPT.length - 1));
    for (const [t, logProb] of expected.contextLogProbs.entries()) {
      const logits = expected.contextLogits[t]!;
      const norm = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
      expect(logProb).toBeCloseTo(logits[PROMPT[t + 1]!]! - norm, 5);
      const best = expected.contextTopTokens[2 * t]!;
      expect(logits[best]).toBe(Math.max(...logits));
      expect(expected.contextTopLogProbs[2 * t]).toBeCloseTo(logits[best]! - norm, 5);
    }
  });

  it('follow the generated tokens: the prompt with the output put in has the same rows', () => {
    const { tokens } = runAlone(makeRequest(1n, PROMPT, 20));
    const forced = alone([...PROMPT, ...tokens.slice(0, -1)], 1);
    expect(forced.contextLogits).toEqual([...expected.contextLogits, ...expected.generationLogits.slice(1)]);
  });

  it.each<[string, HarnessOptions, Record<string, Tensor>]>([
    ['streamed', {}, {}],
    ['in chunks', { maxNumTokens: 8, chunkingPolicy: 'FIRST_COME_FIRST_SERVED' }, {}],
    ['with one row of logits at a time', { maxBatchSize: 1 }, {}],
    ['in calls of their own', { modelType: 'InflightBatching' }, {}],
    ['in lockstep', { modelType: 'V1' }, {}],
    ['in lockstep, whole', { modelType: 'V1' }, { streaming: bool(false) }],
    ['with block reuse', { enableBlockReuse: true }, {}],
  ])('are the same %s', (_, options, inputs) => {
    const other = makeRequest(2n, PROMPT.slice(0, 11), 30);
    const harness = run(options, ask(1n, PROMPT, 20, inputs), other);
    expect(returnedOf(harness, 1n)).toEqual(expected);
    expect(collectReturned(harness.responses.filter((r) => r.requestId === 2n)).contextLogits).toEqual([]);
  });

  it.each<[ModelType, boolean]>([
    ['InflightFusedBatching', false],
    ['InflightFusedBatching', true],
    ['InflightBatching', true],
  ])('are the same through pauses with %s, chunked: %s', (modelType, chunked) => {
    const prompts = [PROMPT, PROMPT.slice(2), PROMPT.slice(5), PROMPT.slice(0, 13)];
    const streams = [true, false, true, false];
    const harness = run(
      {
        modelType,
        schedulerPolicy: 'MAX_UTILIZATION',
        numBlocks: 9,
        ...(chunked ? { maxNumTokens: 16, chunkingPolicy: 'FIRST_COME_FIRST_SERVED' } : {}),
      },
      ...prompts.map((prompt, i) => ask(BigInt(i), prompt, 25, { streaming: bool(streams[i]!) })),
    );
    const pauses = harness.stats.at(-1)!.totalPauses;
    expect(pauses).toBeGreaterThan(2);
    let told = 0;
    for (const [i, prompt] of prompts.entries()) {
      expect(returnedOf(harness, BigInt(i)), `request ${i}`).toEqual(alone(prompt, 25));
      const last = harness.responses.findLast(({ requestId }) => requestId === BigInt(i))!;
      told += Number(tensorOf(last.outputs, 'num_pauses')!.data[0]);
    }
    expect(told).toBe(pauses);
  });

  it('are computed where the cache has the prompt, which then keeps serving others', () => {
    const harness = new LoopHarness({ enableBlockReuse: true });
    const runNext = (request: ReturnType<typeof ask>) => {
      harness.run(request);
      const last = harness.responses.at(-1)!.outputs;
      return ['reused_blocks', 'missed_blocks'].map((name) => Number(tensorOf(last, name)!.data[0]));
    };
    expect(runNext(makeRequest(1n, PROMPT, 4))).toEqual([0, 2]);
    expect(runNext(ask(2n, PROMPT, 20))).toEqual([0, 0]);
    expect(returnedOf(harness, 2n)).toEqual(expected);
    const onlyGeneration = { return_generation_logits: bool(true) };
    expect(runNext(makeRequest(3n, PROMPT, 20, onlyGeneration))).toEqual([2, 0]);
    expect(returnedOf(harness, 3n).generationLogits).toEqual(expected.generationLogits);
  });

  it('come with the response of their tokens: the prompt with the first, nothing twice', () => {
    const { responses } = run({}, ask(1n, PROMPT, 3));
    const shapes = responses.map(({ outputs }) =>
      ['output_ids', 'context_logits', 'generation_logits', 'context_log_probs'].map(
        (name) => tensorOf(outputs, name)?.shape,
      ),
    );
    expect(shapes).toEqual([
      [
        [1, 1, 1],
        [1, 19, VOCAB],
        [1, 1, 1, VOCAB],
        [1, 18],
      ],
      [[1, 1, 1], [1, 1, 1], [1, 1, 1, VOCAB], undefined],
      [[1, 1, 1], [1, 1, 1], [1, 1, 1, VOCAB], undefined],
    ]);
  });

  it('have no row for an end_id, which is not output: the final response has none', () => {
    const { tokens } = runAlone(makeRequest(1n, PROMPT, 20));
    const end = tokens.findIndex((token, i) => i > 2 && tokens.indexOf(token) === i);
    for (const streaming of [true, false]) {
      const request = ask(1n, PROMPT, 20, { end_id: i32(tokens[end]!), streaming: bool(streaming) });
      const harness = run({}, request);
      expect(returnedOf(harness, 1n).generationLogits).toEqual(expected.generationLogits.slice(0, end));
      const last = harness.responses.at(-1)!.outputs;
      expect(tensorOf(last, 'generation_logits')!.shape).toEqual([1, 1, streaming ? 0 : end, VOCAB]);
    }
  });

  it('are dummies where they are not asked for', () => {
    const { responses } = run({}, makeRequest(1n, PROMPT, 2));
    for (const { outputs } of responses) {
      expect(tensorOf(outputs, 'context_logits')!.shape).toEqual([1, 1, 1]);
      expect(tensorOf(outputs, 'generation_logits')!.shape).toEqual([1, 1, 1, 1]);
      expect(tensorOf(outputs, 'context_log_probs')).toBeUndefined();
    }
  });

  it('of a prompt of one token have no log-prob', () => {
    const returned = returnedOf(run({}, ask(1n, [5], 1)), 1n);
    expect(returned.contextLogits.length).toBe(1);
    expect(returned.contextLogProbs).toEqual([]);
    const onlyLogProbs = makeRequest(1n, [5], 1, { return_context_log_probs: bool(true) });
    const { responses } = run({}, onlyLogProbs);
    expect(tensorOf(responses[0]!.outputs, 'context_log_probs')!.shape).toEqual([1, 0]);
  });

  it('of a request stopped within its context are the rows that were computed', () => {
    const harness = new LoopHarness({ maxNumTokens: 8, chunkingPolicy: 'FIRST_COME_FIRST_SERVED' });
    harness.waiting.push(ask(1n, PROMPT, 5));
    harness.loop.iterate();
    harness.stops.add(1n);
    harness.runToEnd();
    const returned = returnedOf(harness, 1n);
    expect(returned.contextLogits).toEqual(expected.contextLogits.slice(0, 16));
    expect(returned.contextLogProbs).toEqual(expected.contextLogProbs.slice(0, 16));
    expect(returned.generationLogits).toEqual([]);
  });

  it('of a request stopped before it ran are none', () => {
    const harness = new LoopHarness({ maxBatchSize: 1 });
    harness.waiting.push(makeRequest(1n, PROMPT, 9), ask(2n, PROMPT, 5));
    harness.loop.iterate();
    harness.stops.add(2n);
    harness.runToEnd();
    const { outputs } = harness.responses.find(({ requestId }) => requestId === 2n)!;
    expect(tensorOf(outputs, 'context_logits')!.shape).toEqual([1, 0, VOCAB]);
    expect(tensorOf(outputs, 'context_log_probs')!.shape).toEqual([1, 0]);
  });

  it('go with a request that fails, and leave its neighbours theirs', () => {
    const harness = run({ fake: { poisonToken: 99 } }, ask(1n, [1, 99, 2], 5), ask(2n, PROMPT, 20));
    expect(harness.resultOf(1n).error).toMatch(/not finite/);
    expect(returnedOf(harness, 1n).contextLogits).toEqual([]);
    expect(returnedOf(harness, 2n)).toEqual(expected);
  });
});

describe('maxReturnedLogitsBytes', () => {
  const row = 4 * VOCAB;
  const context = { return_context_logits: bool(true) };
  const generation = { return_generation_logits: bool(true), streaming: bool(false) };

  it.each<[string, Record<string, Tensor>, string]>([
    [
      'the prompt',
      context,
      `return_context_logits of 19 prompt tokens are ${19 * row} bytes; maxReturnedLogitsBytes is ${18 * row}.`,
    ],
    [
      'the output',
      generation,
      `return_generation_logits of 19 tokens held at once are ${19 * row} bytes; maxReturnedLogitsBytes is ${18 * row}.`,
    ],
    [
      'both',
      { ...context, ...generation },
      `return_context_logits of 19 prompt tokens and return_generation_logits of 19 tokens held at once are ${38 * row} bytes`,
    ],
    [
      'many top log-probs of the prompt',
      { top_context_log_probs: i32(100) },
      `top_context_log_probs = 100 of 19 prompt tokens are ${19 * 80 * 8} bytes`,
    ],
    [
      'many top log-probs of the output',
      { top_log_probs: i32(90) },
      `top_log_probs = 90 of 19 tokens are ${19 * 70 * 8} bytes`,
    ],
  ])('refuses %s with the numbers', (_, inputs, message) => {
    const options = { maxReturnedLogitsBytes: 18 * row };
    const harness = run(options, makeRequest(1n, PROMPT, 19, inputs), makeRequest(2n, PROMPT, 3));
    expect(harness.resultOf(1n).error).toContain(message);
    expect(tensorOf(harness.responses[0]!.outputs, 'invalid_request')).toBeDefined();
    expect(harness.resultOf(2n).error).toBe('');
  });

  it('does not count twenty top log-probs of each token', () => {
    const inputs = { top_log_probs: i32(20), top_context_log_probs: i32(20) };
    const harness = run({ maxReturnedLogitsBytes: 0 }, makeRequest(1n, PROMPT, 20, inputs));
    expect(harness.resultOf(1n).topTokens).toHaveLength(20 * 20);
  });

  it('counts one row for generated tokens that are streamed', () => {
    const inputs = { return_generation_logits: bool(true) };
    const harness = run({ maxReturnedLogitsBytes: row }, makeRequest(1n, PROMPT, 20, inputs));
    expect(returnedOf(harness, 1n).generationLogits.length).toBe(20);
  });

  it('is shared by what is active: who comes too early may come again', () => {
    const harness = new LoopHarness({ maxReturnedLogitsBytes: 30 * row });
    harness.waiting.push(makeRequest(1n, PROMPT, 2, context), makeRequest(2n, PROMPT, 2, context));
    harness.loop.iterate();
    const refusal = harness.responses.find(({ requestId }) => requestId === 2n)!;
    expect(refusal.error).toContain(
      `of maxReturnedLogitsBytes = ${30 * row} other requests hold ${19 * row}, try again when they have ended`,
    );
    expect(tensorOf(refusal.outputs, 'invalid_request')).toBeUndefined();
    harness.runToEnd();
    harness.run(makeRequest(3n, PROMPT, 2, context));
    expect(returnedOf(harness, 3n).contextLogits.length).toBe(19);
  });
});
