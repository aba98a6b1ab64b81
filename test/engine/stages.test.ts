import { describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import { ExecutorLostError } from '../../engine/executors/executor.js';
import { type HarnessOptions, LoopHarness, makeRequest, runAlone } from '../../tools/support/loop-harness.js';

const requestsOf = (count: number, maxNewTokens: number) =>
  Array.from({ length: count }, (_, i) => makeRequest(BigInt(i), [i + 1, 2, 3], maxNewTokens));

function expectSameAsAlone(harness: LoopHarness, requests: readonly InferenceRequest[]): void {
  for (const request of requests) {
    expect(harness.resultOf(request.requestId)).toMatchObject({ ...runAlone(request), error: '' });
  }
}

function run(requests: readonly InferenceRequest[], options: HarnessOptions): LoopHarness {
  const harness = new LoopHarness(options).run(...requests);
  expectSameAsAlone(harness, requests);
  expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  return harness;
}

describe('micro-batches over stages', () => {
  it.each([2, 3, 5])('%i: as many steps are begun as there are stages, without an option', (stages) => {
    const harness = run(requestsOf(7, 6), { stages });
    expect(harness.staged!.mostSeen).toBe(stages);
    const ids = new Set(harness.stats.map(({ microBatchId }) => microBatchId));
    expect([...ids].sort()).toEqual([...Array(stages).keys()]);
    expect(harness.stats.map(({ iteration }) => iteration)).toEqual(harness.stats.map((_, i) => i + 1));
  });

  it('take turns over disjoint parts of the requests', () => {
    const harness = run(requestsOf(6, 4), { stages: 3 });
    const ids = harness.stats.map(({ microBatchId }) => microBatchId);
    expect(ids).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    expect(harness.stats.map(({ scheduledRequests }) => scheduledRequests)).toEqual(Array(12).fill(2));
  });

  it('one request alone takes as many steps as without stages', () => {
    const harness = run(requestsOf(1, 6), { stages: 3 });
    expect([harness.staged!.mostSeen, harness.executor.numSteps]).toEqual([0, 6]);
  });

  it('fewer requests than stages run one in each', () => {
    const harness = run(requestsOf(2, 6), { stages: 4 });
    expect(harness.staged!.mostSeen).toBe(2);
    expect(harness.stats.every(({ scheduledRequests }) => scheduledRequests === 1)).toBe(true);
  });

  it('requests that come and end at other times fill the stages again', () => {
    const requests = requestsOf(9, 4).map((request, i) => ({
      ...request,
      ...makeRequest(BigInt(i), [i + 1, 2], 3 + 2 * i),
    }));
    const harness = new LoopHarness({ stages: 3, maxNumSequences: 9 });
    for (const request of requests) {
      harness.waiting.push(request);
      harness.loop.iterate();
    }
    harness.runToEnd();
    expectSameAsAlone(harness, requests);
    expect(harness.staged!.mostSeen).toBe(3);
  });

  it('V1 and a larger least size run as without turns', () => {
    expect(run(requestsOf(5, 4), { stages: 2, modelType: 'V1' }).staged!.mostSeen).toBe(0);
    expect(run(requestsOf(5, 4), { stages: 2, minMicroBatchSize: 3 }).staged!.mostSeen).toBe(0);
    expect(run(requestsOf(6, 4), { stages: 2, minMicroBatchSize: 3 }).staged!.mostSeen).toBe(2);
  });

  it('InflightBatching: both calls of an iteration are in turn, and each iteration is reported once', () => {
    const harness = run(requestsOf(8, 5), { stages: 3, modelType: 'InflightBatching' });
    expect(harness.stats.map(({ iteration }) => iteration)).toEqual(harness.stats.map((_, i) => i + 1));
    expect(harness.stats.reduce((sum, { generatedTokens }) => sum + generatedTokens, 0)).toBe(40);
  });

  it('time that several steps share counts once', () => {
    const harness = new LoopHarness({ stages: 3 });
    harness.waiting.push(...requestsOf(6, 5));
    while (harness.loop.iterate()) harness.nowMs += 10;
    expect(harness.stats.at(-1)!.totalExecutorMs).toBeLessThanOrEqual(harness.nowMs);
    expect(harness.stats.at(-1)!.totalIterationMs).toBeLessThanOrEqual(harness.nowMs);
  });
});

describe('faults among several steps', () => {
  it('a step that fails takes its own requests with it alone, once', () => {
    const requests = requestsOf(6, 6);
    requests[3] = makeRequest(3n, [50, 60], 6);
    const harness = new LoopHarness({ stages: 3, fake: { throwToken: 60 } }).run(...requests);
    for (const id of [2n, 3n]) {
      expect(harness.resultOf(id).error).toBe(
        'The executor failed in iteration 2: token 60 makes the fake executor throw',
      );
      expect(harness.responses.filter(({ requestId }) => requestId === id)).toHaveLength(1);
    }
    expectSameAsAlone(harness, [requests[0]!, requests[1]!, requests[4]!, requests[5]!]);
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('requests in flight that are cancelled end with their steps', () => {
    const requests = requestsOf(6, 30);
    const harness = new LoopHarness({ stages: 3 });
    harness.waiting.push(...requests);
    for (let i = 0; i < 4; i++) harness.loop.iterate();
    for (const id of [0n, 2n, 4n]) harness.stops.add(id);
    harness.runToEnd();
    for (const id of [0n, 2n, 4n]) expect(harness.resultOf(id)).toMatchObject({ finishReason: 5, error: '' });
    expectSameAsAlone(harness, [requests[1]!, requests[3]!, requests[5]!]);
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('a lost executor ends the loop', () => {
    const harness = new LoopHarness({ stages: 2 });
    harness.waiting.push(...requestsOf(4, 5));
    harness.loop.iterate();
    harness.staged!.finish = () => {
      throw new ExecutorLostError('A rank is gone.');
    };
    expect(() => harness.runToEnd()).toThrow('A rank is gone.');
  });
});
