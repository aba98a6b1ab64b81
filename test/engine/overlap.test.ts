import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import {
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
} from '../../tools/support/loop-harness.js';
import { draws } from '../support/scale.js';

const ON: HarnessOptions = { enableTrtOverlap: true, minMicroBatchSize: 1 };

const requestsOf = (count: number, maxNewTokens: number) =>
  Array.from({ length: count }, (_, i) => makeRequest(BigInt(i), [i + 1, 2, 3], maxNewTokens));

function expectSameAsAlone(harness: LoopHarness, requests: readonly InferenceRequest[]): void {
  for (const request of requests) {
    expect(harness.resultOf(request.requestId)).toMatchObject({ ...runAlone(request), error: '' });
  }
}

/** Requests sent to the loop, and as many calls of iterate as bring all of them into flight or past it. */
function started(requests: readonly InferenceRequest[], options: HarnessOptions = {}): LoopHarness {
  const harness = new LoopHarness({ ...ON, ...options });
  harness.waiting.push(...requests);
  harness.loop.iterate();
  return harness;
}

describe('two micro-batches', () => {
  it('take turns over disjoint halves of the requests, and the statistics tell which one ran', () => {
    const requests = requestsOf(6, 4);
    const harness = started(requests);
    harness.runToEnd();
    expectSameAsAlone(harness, requests);
    expect(harness.stats.map(({ microBatchId }) => microBatchId)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    expect(harness.stats.map(({ scheduledRequests }) => scheduledRequests)).toEqual(Array(8).fill(3));
    expect(harness.stats.map(({ generatedTokens }) => generatedTokens)).toEqual(Array(8).fill(3));
    expect(harness.stats.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const json = harness.statsJson.map((text) => JSON.parse(text)['MicroBatch ID']);
    expect(json).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
  });

  it('are named in the richer form too', () => {
    const harness = started(requestsOf(4, 3), { statsFormat: 'IterationStats' });
    harness.runToEnd();
    const ids = harness.statsJson.map((text) => JSON.parse(text).inflightBatchingStats.microBatchId);
    expect(ids).toEqual([0, 1, 0, 1, 0, 1]);
  });

  it('answer the one that ended while the other one runs', () => {
    const harness = started(requestsOf(2, 3));
    expect([harness.executor.numSteps, harness.responses.length, harness.stats.length]).toEqual([0, 0, 0]);
    harness.loop.iterate();
    expect(harness.executor.numSteps).toBe(1);
    expect(harness.responses.map(({ requestId }) => requestId)).toEqual([0n]);
    harness.loop.iterate();
    expect(harness.executor.numSteps).toBe(2);
    expect(harness.responses.map(({ requestId }) => requestId)).toEqual([0n, 1n]);
    harness.runToEnd();
  });

  it('count every request, token and time once', () => {
    const requests = requestsOf(7, 5);
    const harness = new LoopHarness(ON);
    for (const request of requests) {
      harness.waiting.push(request);
      harness.loop.iterate();
      harness.nowMs += 10;
    }
    for (let i = 0; harness.loop.iterate() && i < 1000; i++) harness.nowMs += 10;
    const sum = (count: (stats: LoopHarness['stats'][number]) => number) =>
      harness.stats.reduce((total, stats) => total + count(stats), 0);
    expect(sum(({ newRequests }) => newRequests)).toBe(7);
    expect(sum(({ completedRequests }) => completedRequests)).toBe(7);
    expect(sum(({ generatedTokens }) => generatedTokens)).toBe(35);
    expect(sum(({ contextRequests }) => contextRequests)).toBe(7);
    expect(sum(({ generationRequests }) => generationRequests)).toBe(28);
    expect(sum(({ iterationMs }) => iterationMs)).toBe(harness.stats.at(-1)!.totalIterationMs);
    expect(harness.stats.at(-1)!.totalIterationMs).toBeLessThanOrEqual(harness.nowMs);
    expect(harness.stats.at(-1)!.totalExecutorMs).toBeLessThanOrEqual(harness.nowMs);
    for (const { activeRequests } of harness.stats) expect(activeRequests).toBeGreaterThan(0);
  });

  it('run contexts and generation apart under InflightBatching', () => {
    const requests = requestsOf(6, 4);
    const harness = started(requests, { modelType: 'InflightBatching' });
    harness.runToEnd();
    expectSameAsAlone(harness, requests);
    expect(harness.stats.some(({ microBatchId }) => microBatchId === 1)).toBe(true);
  });
});

describe('few requests', () => {
  it.each([1, 2, 5])('%i: take as many steps as without overlap', (count) => {
    const requests = requestsOf(count, 6);
    const steps = [false, true].map((enableTrtOverlap) => {
      const harness = new LoopHarness({ enableTrtOverlap, minMicroBatchSize: 3 });
      harness.executor.begin = () => expect.fail('there is nothing to run beside it');
      harness.run(...requests);
      expectSameAsAlone(harness, requests);
      expect(harness.stats.every(({ microBatchId }) => microBatchId === 0)).toBe(true);
      return harness.executor.numSteps;
    });
    expect(steps).toEqual([6, 6]);
  });

  it('that come while others run join them instead of taking turns with them', () => {
    const requests = requestsOf(3, 6);
    const harness = new LoopHarness({ ...ON, minMicroBatchSize: 3 });
    for (const request of requests) {
      harness.waiting.push(request);
      harness.loop.iterate();
    }
    harness.runToEnd();
    expectSameAsAlone(harness, requests);
    expect(harness.stats.every(({ microBatchId }) => microBatchId === 0)).toBe(true);
    expect(harness.stats.some(({ scheduledRequests }) => scheduledRequests === 3)).toBe(true);
  });
});

describe('a request in flight', () => {
  it('that is cancelled ends with its step, whose token it still gets', () => {
    const harness = started(requestsOf(2, 20));
    harness.loop.iterate(); // 0 has its first token, 1 is in flight
    harness.stops.add(1n);
    harness.loop.iterate(); // 1 ends its step; 0 is in flight again
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: 5, error: '' });
    expect(harness.resultOf(1n).tokens).toEqual(runAlone(requestsOf(2, 20)[1]!).tokens.slice(0, 1));
    expect(harness.kvCache.hasSequence(1n)).toBe(false);
    harness.runToEnd();
    expectSameAsAlone(harness, [requestsOf(2, 20)[0]!]);
  });

  it('keeps its blocks and gets no response until its step has ended', () => {
    const harness = started(requestsOf(2, 20));
    harness.stops.add(0n);
    harness.onResponse = () => expect(harness.executor.numSteps).toBeGreaterThan(0);
    expect(harness.kvCache.hasSequence(0n)).toBe(true);
    harness.loop.iterate();
    expect(harness.resultOf(0n).finishReason).toBe(5);
    harness.runToEnd();
  });

  it('that ends by itself is not cancelled, and its id is free at once', () => {
    const harness = started([makeRequest(0n, [1, 2], 1), makeRequest(1n, [3], 9)]);
    harness.stops.add(0n); // in flight: the signal waits for its step, which is its last
    harness.loop.iterate();
    expect(harness.resultOf(0n)).toMatchObject({
      finishReason: runAlone(makeRequest(0n, [1, 2], 1)).finishReason,
    });
    harness.responses.length = 0;
    harness.run(makeRequest(0n, [7, 8], 3));
    expectSameAsAlone(harness, [makeRequest(0n, [7, 8], 3)]);
  });

  it('whose time is over ends with its step; one that waits ends at once', () => {
    const timed = (id: bigint) => makeRequest(id, [Number(id) + 1, 2], 20, { time_limit_ms: i32(100) });
    const harness = started([timed(0n), timed(1n), timed(2n)], { maxBatchSize: 1 });
    harness.nowMs = 100;
    harness.loop.iterate(); // 0 landed, 1 has been started, 2 waits
    const reasons = [0n, 2n].map((id) => harness.resultOf(id).finishReason);
    expect(reasons).toEqual([4, 4]);
    expect(harness.responses.some(({ requestId }) => requestId === 1n)).toBe(false);
    harness.loop.iterate();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: 4, sequenceLength: 3 });
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('refuses another one of its id', () => {
    const harness = started(requestsOf(2, 3));
    harness.waiting.push(makeRequest(0n, [9], 3));
    harness.loop.iterate();
    expect(harness.errors).toMatchObject([{ reason: 'duplicate', requestId: 0n }]);
    harness.runToEnd();
    expectSameAsAlone(harness, requestsOf(2, 3));
  });
});

describe.each(['at-begin', 'at-finish'] as const)('a step that fails (%s)', (begunStepsRun) => {
  it('takes its own micro-batch with it and leaves the other one alone', () => {
    const requests = requestsOf(4, 6);
    requests[3] = makeRequest(3n, [50, 60], 6);
    const harness = started(requests, { fake: { begunStepsRun, throwToken: 60 } });
    harness.runToEnd();
    for (const id of [2n, 3n]) {
      expect(harness.resultOf(id).error).toBe(
        'The executor failed in iteration 2: token 60 makes the fake executor throw',
      );
    }
    expectSameAsAlone(harness, requests.slice(0, 2));
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('fails one request alone where its logits are not finite', () => {
    const requests = requestsOf(4, 6);
    requests[1] = makeRequest(1n, [77, 2], 6);
    const harness = started(requests, { fake: { begunStepsRun, poisonToken: 77 } });
    harness.runToEnd();
    expect(harness.resultOf(1n).error).toMatch(/not finite/);
    expectSameAsAlone(harness, [requests[0]!, requests[2]!, requests[3]!]);
  });
});

describe('the end', () => {
  it('comes when the step in flight has ended and nothing is active', () => {
    const requests = requestsOf(2, 4);
    const harness = started(requests);
    harness.loop.drain();
    let calls = 0;
    while (harness.loop.iterate()) calls++;
    expect(calls).toBeGreaterThan(4);
    expectSameAsAlone(harness, requests);
    harness.executor.close(); // would throw with a step in flight
    expect(harness.loop.iterate()).toBe(false);
  });

  it('of the last requests leaves no step behind: the loop is busy until it has reported', () => {
    const harness = started([makeRequest(1n, [1, 2], 1), makeRequest(2n, [3], 1)]);
    expect(harness.responses).toHaveLength(0);
    expect(harness.loop.iterate()).toBe(true);
    expect(harness.responses).toHaveLength(1);
    expect(harness.loop.iterate()).toBe(true);
    expect(harness.resultOf(2n).tokens).toHaveLength(1);
    expect(harness.loop.iterate()).toBe(false);
    harness.executor.close();
  });
});

interface Arrival {
  promptLength: number;
  maxNewTokens: number;
  arrival: number;
}

const crowd = fc.array(
  fc.record({
    promptLength: fc.integer({ min: 1, max: 30 }),
    maxNewTokens: fc.integer({ min: 1, max: 30 }),
    arrival: fc.nat(20),
  }),
  { minLength: 4, maxLength: 20 },
);

/** Runs the crowd on a pool far too small. `firstTokens`: by request, the iteration that drew its first token. */
function runCrowd(
  arrivals: readonly Arrival[],
  options: HarnessOptions,
): { firstTokens: number[]; harness: LoopHarness } {
  const harness = new LoopHarness({ ...ON, numBlocks: 9, maxNumSequences: 10, ...options });
  const firstTokens: number[] = [];
  harness.onResponse = ({ requestId }) => {
    firstTokens[Number(requestId)] ??= harness.stats.length;
  };
  for (let iteration = 0; iteration < 10_000; iteration++) {
    for (const [i, { promptLength, maxNewTokens, arrival }] of arrivals.entries()) {
      if (arrival !== iteration) continue;
      const prompt = Array.from({ length: promptLength }, (_, position) => (7 * i + position) % 100);
      harness.waiting.push(makeRequest(BigInt(i), prompt, maxNewTokens));
    }
    if (!harness.loop.iterate() && iteration > 20 && harness.waiting.length === 0)
      return { firstTokens, harness };
  }
  throw new Error('The crowd never came to an end.');
}

describe('on a pool far too small', () => {
  const begunStepsRun = fc.constantFrom('at-begin' as const, 'at-finish' as const);

  it('GUARANTEED_NO_EVICT pauses nobody and lets nobody overtake', () => {
    let overlapped = 0;
    fc.assert(
      fc.property(crowd, begunStepsRun, (arrivals, runs) => {
        const { firstTokens, harness } = runCrowd(arrivals, { fake: { begunStepsRun: runs } });
        expect(harness.stats.at(-1)!.totalPauses).toBe(0);
        // Without chunks a request has its first token in the iteration after its start.
        const came = [...arrivals.keys()].sort(
          (a, b) => arrivals[a]!.arrival - arrivals[b]!.arrival || a - b,
        );
        const started = came.map((i) => firstTokens[i]!);
        expect(started).toEqual(started.toSorted((a, b) => a - b));
        for (const { microBatchId } of harness.stats) overlapped += microBatchId;
      }),
      { numRuns: draws(20) },
    );
    expect(overlapped).toBeGreaterThan(draws(60));
  });

  it('MAX_UTILIZATION always moves on: each iteration draws a token, pauses, or computes a context', () => {
    let pauses = 0;
    fc.assert(
      fc.property(crowd, begunStepsRun, fc.boolean(), (arrivals, runs, isChunked) => {
        const { harness } = runCrowd(arrivals, {
          schedulerPolicy: 'MAX_UTILIZATION',
          fake: { begunStepsRun: runs },
          ...(isChunked ? { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: 16 } : {}),
        });
        for (const stats of harness.stats) {
          expect(stats.generatedTokens + stats.contextTokens + stats.pausedRequests).toBeGreaterThan(0);
        }
        for (const [i] of arrivals.entries()) expect(harness.resultOf(BigInt(i)).error).toBe('');
        pauses += harness.stats.at(-1)!.totalPauses;
      }),
      { numRuns: draws(20) },
    );
    expect(pauses).toBeGreaterThan(draws(10));
  });
});
