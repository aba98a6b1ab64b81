import { describe, expect, it } from 'vitest';
import { NUMBERS_PER_STEP } from '../../engine/loop/flight-recorder.js';
import {
  bool,
  f32,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  tensorOf,
  u64,
} from '../../tools/support/loop-harness.js';

const PROMPT = [3, 1, 4, 1, 5];

describe('responses', () => {
  it('stream one token an iteration, with the cumulative length, and mark the last as final', () => {
    const harness = new LoopHarness().run(makeRequest(7n, PROMPT, 3));
    expect(harness.responses.map((r) => tensorOf(r.outputs, 'output_ids')?.shape)).toEqual([
      [1, 1, 1],
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(harness.responses.map((r) => tensorOf(r.outputs, 'sequence_length')?.data[0])).toEqual([6, 7, 8]);
    expect(harness.responses.map((r) => r.final)).toEqual([false, false, true]);
    expect(harness.resultOf(7n).finishReason).toBe(3);
  });

  it('come once and whole without streaming: prompt, output, then pad_id up to maxSeqLen', () => {
    const streamed = runAlone(makeRequest(1n, PROMPT, 4));
    const harness = new LoopHarness().run(
      makeRequest(1n, PROMPT, 4, { streaming: bool(false), pad_id: i32(9) }),
    );
    expect(harness.responses).toHaveLength(1);
    const { outputs } = harness.responses[0]!;
    const ids = tensorOf(outputs, 'output_ids')!;
    expect(ids.shape).toEqual([1, 1, 64]);
    expect([...(ids.data as Int32Array)]).toEqual([...PROMPT, ...streamed.tokens, ...Array(55).fill(9)]);
    expect(tensorOf(outputs, 'context_logits')?.shape).toEqual([1, 1, 1]);
    expect(tensorOf(outputs, 'generation_logits')?.shape).toEqual([1, 1, 1, 1]);
    expect(tensorOf(outputs, 'random_seed')?.data[0]).toBe(4711n);
  });

  it('carry log-probs, their sum, and the most probable tokens where asked', () => {
    const inputs = { return_log_probs: bool(true), top_log_probs: i32(2) };
    const result = runAlone(makeRequest(1n, PROMPT, 4, inputs));
    expect(result.logProbs).toHaveLength(4);
    expect(result.topTokens).toHaveLength(8);
    expect(result.topTokens.filter((_, index) => index % 2 === 0)).toEqual(result.tokens);
    expect(result.cumLogProb).toBe(Math.fround(result.logProbs.reduce((sum, value) => sum + value, 0)));
    expect(runAlone(makeRequest(1n, PROMPT, 4)).logProbs).toEqual([]);
  });

  it('carry as many of the most probable tokens as the vocabulary has, beside requests with few or none', () => {
    const harness = new LoopHarness();
    const topOf = { 1: 100, 2: 0, 3: 7, 4: 100 };
    for (const [id, top] of Object.entries(topOf)) {
      const inputs = { return_log_probs: bool(true), top_log_probs: i32(top) };
      harness.waiting.push(makeRequest(BigInt(id), [Number(id), ...PROMPT], 4, inputs));
    }
    harness.run(makeRequest(5n, PROMPT, 4, { top_log_probs: i32(101) }));
    for (const [id, top] of Object.entries(topOf)) {
      const { tokens, topTokens } = harness.resultOf(BigInt(id));
      expect(topTokens).toHaveLength(4 * top);
      if (top > 0) expect(topTokens.filter((_, index) => index % top === 0)).toEqual(tokens);
    }
    expect(harness.resultOf(5n).error).toMatch(/top_log_probs is 101; .* from 0 to 100/);
  });

  it('return the seed that was given and depend on it', () => {
    const sample = (seed: bigint) =>
      runAlone(makeRequest(1n, PROMPT, 8, { temperature: f32(1), random_seed: u64(seed) })).tokens;
    expect(sample(1n)).toEqual(sample(1n));
    expect(sample(1n)).not.toEqual(sample(2n));
  });
});

describe('errors belong to one request', () => {
  const neighbour = makeRequest(2n, [1, 2], 10);
  const alone = runAlone(neighbour);

  it('a duplicate id is reported as an error; its owner goes on and the id can be used again afterwards', () => {
    const harness = new LoopHarness();
    harness.waiting.push(neighbour);
    harness.loop.iterate();
    harness.waiting.push(makeRequest(2n, [9], 3));
    harness.loop.iterate();
    expect(harness.errors).toMatchObject([{ code: 'SKEIN_REQUEST_ID', reason: 'duplicate', requestId: 2n }]);
    harness.runToEnd();
    expect(harness.responses.filter(({ error, final }) => error !== '' || final)).toHaveLength(1);
    expect(
      harness.responses.flatMap((r) => [...(tensorOf(r.outputs, 'output_ids')!.data as Int32Array)]),
    ).toEqual(alone.tokens);
    harness.responses.length = 0;
    harness.run(neighbour);
    expect(harness.resultOf(2n)).toEqual(alone);
  });

  it('logits that are not finite fail their row only', () => {
    const harness = new LoopHarness({ fake: { poisonToken: 77 } }).run(
      makeRequest(1n, [5, 77], 10),
      neighbour,
    );
    expect(harness.resultOf(1n).error).toMatch(/not finite/);
    expect(harness.resultOf(2n)).toEqual(alone);
    expect(harness.kvCache.freeBlocks).toBe(64);
  });

  it('a step that throws fails its batch; the loop goes on with what comes next', () => {
    const harness = new LoopHarness({ fake: { throwToken: 88 } });
    harness.waiting.push(makeRequest(1n, [5, 88], 10), makeRequest(3n, [6], 10));
    harness.loop.iterate();
    for (const id of [1n, 3n]) expect(harness.resultOf(id).error).toMatch(/failed in iteration 1: token 88/);
    expect(harness.kvCache.freeBlocks).toBe(64);
    harness.run(neighbour);
    expect(harness.resultOf(2n)).toEqual(alone);
  });

  it.each([
    ['longer than maxSeqLen', makeRequest(1n, PROMPT, 60), /65.*maxSeqLen = 64/],
    ['an unknown tensor', makeRequest(1n, PROMPT, 5, { runtime_top_kk: i32(1) }), /runtime_top_kk/],
  ])('%s is refused at once with the numbers', (_, request, message) => {
    const harness = new LoopHarness();
    harness.waiting.push(request);
    harness.loop.iterate();
    expect(harness.resultOf(1n).error).toMatch(message);
    expect(harness.executor.numSteps).toBe(0);
    expect(harness.stats).toEqual([]);
  });

  it('a request without a usable id reaches the error hook', () => {
    const harness = new LoopHarness();
    harness.waiting.push({ requestId: -1n, inputs: {} });
    harness.loop.iterate();
    expect(harness.errors[0]?.message).toMatch(/requestId is -1/);
    expect(harness.responses).toEqual([]);
  });

  it('more requests than asked for are refused, each by its own response', () => {
    const harness = new LoopHarness({ maxNumSequences: 2 });
    harness.ignoresMax = true;
    for (let id = 0n; id < 4n; id++) harness.waiting.push(makeRequest(id, PROMPT, 3));
    harness.runToEnd();
    const errors = [0n, 1n, 2n, 3n].map((id) => harness.resultOf(id).error !== '');
    expect(errors).toEqual([false, false, true, true]);
  });
});

describe('stop signals', () => {
  it.each([
    ['waiting for blocks', 3n],
    ['between chunks of its context', 2n],
    ['generating', 1n],
  ])('end a request that is %s, and free its blocks in that iteration', (_, stopped) => {
    // The pool holds 8 blocks: 1 takes 3 of them, 2 takes 5, 3 has to wait.
    const harness = new LoopHarness({
      numBlocks: 8,
      maxNumTokens: 16,
      chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
    });
    harness.waiting.push(makeRequest(1n, [1, 2], 20));
    harness.loop.iterate();
    harness.waiting.push(makeRequest(2n, Array(36).fill(3), 4), makeRequest(3n, [4], 30));
    harness.loop.iterate();
    const before = harness.kvCache.blocksHeld(stopped);
    const free = harness.kvCache.freeBlocks;
    harness.stops.add(stopped);
    harness.loop.iterate();
    expect(harness.resultOf(stopped)).toMatchObject({ finishReason: 5, error: '' });
    expect(harness.kvCache.blocksHeld(stopped)).toBe(0);
    expect(harness.kvCache.freeBlocks).toBeGreaterThanOrEqual(free + before);
    harness.runToEnd();
    for (const id of [1n, 2n, 3n]) expect(harness.resultOf(id).finishReason).toBe(id === stopped ? 5 : 3);
  });

  it('for an unknown request do nothing', () => {
    const harness = new LoopHarness();
    harness.stops.add(99n);
    harness.run(makeRequest(1n, PROMPT, 3));
    expect(harness.resultOf(1n).finishReason).toBe(3);
  });

  it('end a request after its time limit with what it has', () => {
    const harness = new LoopHarness();
    harness.waiting.push(makeRequest(1n, PROMPT, 30, { time_limit_ms: i32(100) }));
    for (let i = 0; i < 5; i++) harness.loop.iterate();
    harness.nowMs = 100;
    harness.loop.iterate();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: 4 });
    expect(harness.resultOf(1n).tokens).toHaveLength(6);
  });
});

describe('order', () => {
  it('follows priority, then arrival', () => {
    const harness = new LoopHarness({ maxBatchSize: 1, maxNumSequences: 4 }).run(
      makeRequest(1n, [1], 2, {}, 0.2),
      makeRequest(2n, [2], 2, {}, 0.8),
      makeRequest(3n, [3], 2, {}, 0.8),
    );
    const finals = harness.responses.filter((response) => response.final);
    expect(finals.map((response) => response.requestId)).toEqual([2n, 3n, 1n]);
  });
});

describe('times of a request', () => {
  it('come with its final response: scheduled, first and last token since the arrival, and its iterations', () => {
    const harness = new LoopHarness({ maxNumSequences: 2, maxBatchSize: 1 });
    const step = harness.executor.step.bind(harness.executor);
    harness.executor.step = (...args) => {
      harness.nowMs += 10;
      step(...args);
    };
    harness.nowMs = 1000;
    const first = { ...makeRequest(1n, PROMPT, 3), arrivalTimeMs: 950 };
    harness.run(first, makeRequest(2n, PROMPT, 2));
    const timesOf = (requestId: bigint) => {
      const last = harness.responses.findLast((response) => response.requestId === requestId)!;
      const data = (name: string) => Array.from(tensorOf(last.outputs, name)!.data, Number);
      return [...data('request_times_ms'), ...data('num_iterations')];
    };
    expect(timesOf(1n)).toEqual([50, 60, 80, 3]);
    expect(timesOf(2n)).toEqual([30, 40, 50, 2]);
    const earlier = harness.responses.filter((response) => !response.final);
    expect(earlier.some(({ outputs }) => tensorOf(outputs, 'request_times_ms'))).toBe(false);
  });

  it('are -1 where nothing happened, and an arrival in the future is now', () => {
    const harness = new LoopHarness({ maxNumSequences: 2, maxBatchSize: 1 });
    harness.nowMs = 5;
    harness.waiting.push(makeRequest(1n, PROMPT, 3), { ...makeRequest(2n, PROMPT, 2), arrivalTimeMs: 99 });
    harness.stops.add(2n);
    harness.runToEnd();
    const cancelled = harness.responses.find((response) => response.requestId === 2n)!;
    expect([...tensorOf(cancelled.outputs, 'request_times_ms')!.data]).toEqual([-1, -1, -1]);
    expect(harness.stats[0]).toMatchObject({ newRequests: 2, newRequestsQueueMs: 0 });
  });

  it('refuse an arrival that is no number', () => {
    const harness = new LoopHarness().run({ ...makeRequest(1n, PROMPT, 3), arrivalTimeMs: Number.NaN });
    expect(harness.resultOf(1n).error).toMatch(/arrivalTimeMs is NaN; it must be a number/);
  });
});

describe('the richer statistics', () => {
  it('have exactly their keys', () => {
    const harness = new LoopHarness({ statsFormat: 'IterationStats', maxBatchSize: 1 });
    harness.nowMs = 100;
    const late = { ...makeRequest(2n, PROMPT, 2), arrivalTimeMs: 70 };
    harness.run(makeRequest(1n, PROMPT, 1), late);
    expect(JSON.parse(harness.statsJson[0]!)).toEqual({
      timestamp: expect.stringMatching(/^\d\d-\d\d-\d{4} \d\d:\d\d:\d\d$/),
      iter: 1,
      iterLatencyMS: 0,
      newActiveRequestsQueueLatencyMS: 30,
      numNewActiveRequests: 2,
      numActiveRequests: 2,
      numQueuedRequests: 1,
      numCompletedRequests: 1,
      maxNumActiveRequests: 8,
      kvCacheStats: {
        maxNumBlocks: 64,
        freeNumBlocks: 63,
        usedNumBlocks: 1,
        tokensPerBlock: 8,
        allocTotalBlocks: 1,
        allocNewBlocks: 1,
        reusedBlocks: 0,
        missedBlocks: expect.any(Number),
        cacheHitRate: 0,
        secondaryMaxNumBlocks: 0,
        secondaryUsedNumBlocks: 0,
        swappedOutBlocks: 0,
        swappedInBlocks: 0,
      },
      inflightBatchingStats: {
        numScheduledRequests: 1,
        numContextRequests: 1,
        numGenRequests: 0,
        numPausedRequests: 0,
        numCtxTokens: 5,
        microBatchId: 0,
        avgNumDecodedTokensPerIter: 0,
      },
      specDecodingStats: null,
    });
    expect(JSON.parse(harness.statsJson.at(-1)!)).toMatchObject({
      inflightBatchingStats: { numGenRequests: 1, avgNumDecodedTokensPerIter: 1 },
    });
  });

  it('describe the batch of V1 in keys of their own', () => {
    const harness = new LoopHarness({ statsFormat: 'IterationStats', modelType: 'V1' }).run(
      makeRequest(1n, PROMPT, 1),
      makeRequest(2n, PROMPT, 2),
    );
    const last = JSON.parse(harness.statsJson.at(-1)!);
    expect(last).not.toHaveProperty('inflightBatchingStats');
    expect(last.staticBatchingStats).toEqual({
      numScheduledRequests: 1,
      numContextRequests: 0,
      numCtxTokens: 0,
      numGenTokens: 1,
      emptyGenSlots: 1,
    });
  });
});

describe('statistics', () => {
  it('have exactly the keys that parsers in the field need, and are not sent when nothing is active', () => {
    const harness = new LoopHarness();
    expect(harness.loop.iterate()).toBe(false);
    expect(harness.statsJson).toEqual([]);
    harness.run(makeRequest(1n, PROMPT, 2));
    expect(harness.statsJson).toHaveLength(2);
    const first = JSON.parse(harness.statsJson[0]!);
    expect(first.Timestamp).toMatch(/^\d\d-\d\d-\d{4} \d\d:\d\d:\d\d$/);
    expect(first).toEqual({
      'Active Request Count': 1,
      'Context Requests': 1,
      'Free KV cache blocks': 63,
      'Generation Requests': 0,
      'Iteration Counter': 1,
      'Max KV cache blocks': 64,
      'Max Request Count': 8,
      'MicroBatch ID': 0,
      'Paused Requests': 0,
      'Runtime CPU Memory Usage': expect.any(Number),
      'Runtime GPU Memory Usage': 0,
      'Runtime Pinned Memory Usage': 0,
      'Scheduled Requests': 1,
      Timestamp: expect.any(String),
      'Tokens per KV cache block': 8,
      'Total Context Tokens': 5,
      'Used KV cache blocks': 1,
    });
    expect(JSON.parse(harness.statsJson[1]!)).toMatchObject({
      'Generation Requests': 1,
      'Iteration Counter': 2,
      'Total Context Tokens': 0,
    });
  });
});

describe('draining', () => {
  it('lets active requests end and refuses new ones', () => {
    const harness = new LoopHarness();
    harness.waiting.push(makeRequest(1n, PROMPT, 5));
    harness.loop.iterate();
    harness.loop.drain();
    harness.ignoresMax = true;
    harness.run(makeRequest(2n, PROMPT, 5));
    expect(harness.resultOf(1n).tokens).toHaveLength(5);
    expect(harness.resultOf(2n).error).toMatch(/shutting down/);
  });

  it('begins with the request whose id is terminateReqId, which gets no answer', () => {
    const harness = new LoopHarness({ terminateReqId: 42n }).run(
      makeRequest(1n, PROMPT, 5),
      makeRequest(42n, PROMPT, 5),
    );
    expect(harness.loop.isDraining).toBe(true);
    expect(harness.resultOf(1n).tokens).toHaveLength(5);
    expect(harness.responses.some((response) => response.requestId === 42n)).toBe(false);
  });
});

describe('the record of chunks', () => {
  it.each([false, true])('begins none before its request has come; overlap %s', (enableTrtOverlap) => {
    const harness = new LoopHarness({ enableTrtOverlap });
    const { waiting } = harness;
    // A request comes while an iteration, which has begun, asks for requests.
    const give = harness.getInferenceRequests.bind(harness);
    const arrivals = new Map<number, number>();
    harness.getInferenceRequests = (max) => {
      harness.nowMs += 10;
      const id = arrivals.size + 1;
      if (id <= 3) {
        waiting.push({ ...makeRequest(BigInt(id), PROMPT, 3), arrivalTimeMs: harness.nowMs });
        arrivals.set(id, harness.nowMs);
      }
      return give(max);
    };
    const begins = new Map<number, number>();
    while (harness.loop.iterate()) {
      const { steps } = harness.loop.formation().record;
      for (let i = 0; i < steps.length; i += NUMBERS_PER_STEP) begins.set(steps[i]!, steps[i + 2]!);
    }
    expect(begins).toEqual(arrivals);
  });
});
