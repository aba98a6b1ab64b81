import { describe, expect, it } from 'vitest';
import { FINISH_CANCELLED, FINISH_LENGTH, FINISH_TIMED_OUT } from '../../../callbacks/response-batch.js';
import type { PackedBatch } from '../../../engine/packed-call/packed-batch.js';
import { bool, i32, LoopHarness, makeRequest, runAlone } from '../../../tools/support/loop-harness.js';

interface Call {
  tokens: number;
  sequences: number;
  logitRows: number;
  lengths: number[];
}

/** Records what each call of the executor was given. */
function recordCalls(harness: LoopHarness): Call[] {
  const calls: Call[] = [];
  const step = harness.executor.step.bind(harness.executor);
  harness.executor.step = (batch: PackedBatch, ...rest) => {
    calls.push({
      tokens: batch.numTokens,
      sequences: batch.numSequences,
      logitRows: batch.numLogitRows,
      lengths: [...batch.contextLength.subarray(0, batch.numSequences)],
    });
    step(batch, ...rest);
  };
  return calls;
}

const prompt = (length: number) => Array.from({ length }, (_, i) => i + 1);

describe('InflightBatching', () => {
  it('runs contexts and generation of an iteration in a call each, without padding', () => {
    const harness = new LoopHarness({ modelType: 'InflightBatching' });
    const calls = recordCalls(harness);
    harness.waiting.push(makeRequest(1n, prompt(5), 3));
    harness.loop.iterate();
    harness.run(makeRequest(2n, prompt(7), 3));
    expect(calls.map(({ tokens, sequences }) => [tokens, sequences])).toEqual([
      [5, 1],
      [7, 1],
      [1, 1],
      [2, 2],
      [1, 1],
    ]);
    expect(harness.stats[1]).toMatchObject({ contextRequests: 1, generationRequests: 1, contextTokens: 7 });
    expect(harness.executor.numSteps).toBe(5);
  });

  it('loses only the contexts when the call with the contexts throws', () => {
    const harness = new LoopHarness({ modelType: 'InflightBatching', fake: { throwToken: 77 } });
    const good = makeRequest(1n, prompt(8), 6);
    harness.waiting.push(good);
    harness.loop.iterate();
    // In this very iteration the first request opens a block, which is zeroed though the call before it threw.
    harness.run(makeRequest(2n, [77], 3));
    expect(harness.resultOf(2n).error).toMatch(/token 77 makes the fake executor throw/);
    expect(harness.resultOf(1n)).toEqual(runAlone(good));
  });
});

describe('V1', () => {
  it('pads contexts to the longest and runs ended requests on as empty slots until the batch is done', () => {
    const harness = new LoopHarness({ modelType: 'V1' });
    const calls = recordCalls(harness);
    const requests = [makeRequest(1n, prompt(10), 2), makeRequest(2n, prompt(3), 4)];
    harness.run(...requests);
    expect(calls).toEqual([
      { tokens: 20, sequences: 3, logitRows: 2, lengths: [10, 3, 10] },
      { tokens: 2, sequences: 2, logitRows: 2, lengths: [11, 4] },
      { tokens: 2, sequences: 2, logitRows: 2, lengths: [5, 12] },
      { tokens: 2, sequences: 2, logitRows: 2, lengths: [6, 13] },
    ]);
    expect(harness.stats.map((stats) => stats.emptyGenerationSlots)).toEqual([0, 0, 1, 1]);
    for (const request of requests) {
      const { numResponses: _, ...alone } = runAlone(request);
      expect(harness.resultOf(request.requestId)).toMatchObject(alone);
    }
  });

  it('answers with the batch: streamed tokens as they come, final responses together', () => {
    const harness = new LoopHarness({ modelType: 'V1' });
    harness.waiting.push(makeRequest(1n, prompt(4), 1));
    harness.waiting.push(makeRequest(2n, prompt(4), 1, { streaming: bool(false) }));
    harness.waiting.push(makeRequest(3n, prompt(4), 4, { streaming: bool(false) }));
    const log: string[] = [];
    harness.onResponse = ({ requestId, final, outputs }) => {
      const length = outputs.find(({ name }) => name === 'output_ids')!.data.length;
      log.push(`${harness.stats.length}: ${requestId} ${final ? 'final' : 'more'} ${length}`);
    };
    harness.runToEnd();
    expect(log).toEqual(['0: 1 more 1', '3: 1 final 0', '3: 2 final 64', '3: 3 final 64']);
    expect(harness.resultOf(2n).finishReason).toBe(FINISH_LENGTH);
  });

  it('starts the next batch only when the one before is done, in order, as large as maxNumTokens allows', () => {
    const harness = new LoopHarness({ modelType: 'V1', maxNumTokens: 24 });
    const lengths = [5, 8, 3, 2, 12];
    for (const [i, length] of lengths.entries())
      harness.waiting.push(makeRequest(BigInt(i), prompt(length), 2 + i));
    harness.runToEnd();
    const contexts = harness.stats.map(({ contextRequests }) => contextRequests);
    expect(contexts).toEqual([3, 0, 0, 0, 2, 0, 0, 0, 0, 0]);
    expect(harness.stats.map(({ contextTokens }) => contextTokens)).toEqual([16, 0, 0, 0, 14, 0, 0, 0, 0, 0]);
  });

  it('lets a cancelled, an overdue and a failed request leave at once; their slots run on', () => {
    const harness = new LoopHarness({ modelType: 'V1', fake: { poisonToken: 99 } });
    harness.waiting.push(
      makeRequest(1n, prompt(3), 20),
      makeRequest(2n, prompt(4), 20, { time_limit_ms: i32(50) }),
      makeRequest(3n, [99], 20),
      makeRequest(4n, prompt(6), 6),
    );
    harness.loop.iterate();
    expect(harness.resultOf(3n).error).toMatch(/not finite/);
    harness.stops.add(1n);
    harness.loop.iterate();
    expect(harness.resultOf(1n).finishReason).toBe(FINISH_CANCELLED);
    harness.nowMs = 60;
    harness.loop.iterate();
    expect(harness.resultOf(2n).finishReason).toBe(FINISH_TIMED_OUT);
    harness.runToEnd();
    expect(harness.stats.map(({ emptyGenerationSlots }) => emptyGenerationSlots)).toEqual([0, 1, 2, 3, 3, 3]);
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('lets a request that waits for its batch be cancelled', () => {
    const harness = new LoopHarness({ modelType: 'V1' });
    harness.waiting.push(makeRequest(1n, prompt(3), 1), makeRequest(2n, prompt(3), 10));
    harness.loop.iterate();
    expect(harness.responses.filter(({ requestId, final }) => requestId === 1n && final)).toEqual([]);
    harness.stops.add(1n);
    harness.loop.iterate();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: FINISH_CANCELLED });
    expect(harness.resultOf(1n).tokens).toHaveLength(1);
  });

  it('lets an empty slot grow no longer than maxSeqLen', () => {
    const harness = new LoopHarness({ modelType: 'V1', maxSeqLen: 32, maxNumTokens: 64 });
    const calls = recordCalls(harness);
    harness.run(makeRequest(1n, prompt(30), 2), makeRequest(2n, prompt(1), 31));
    expect(Math.max(...calls.flatMap(({ lengths }) => lengths))).toBe(32);
    expect(harness.resultOf(2n).error).toBe('');
    expect(harness.resultOf(2n).tokens).toHaveLength(31);
  });

  it('loses its batch when the executor throws, and starts the next', () => {
    const harness = new LoopHarness({ modelType: 'V1', fake: { throwToken: 77 } });
    harness.waiting.push(makeRequest(1n, [77], 3), makeRequest(2n, prompt(3), 3));
    harness.loop.iterate();
    harness.run(makeRequest(3n, prompt(3), 3));
    expect(harness.resultOf(1n).error).toMatch(/throw/);
    expect(harness.resultOf(2n).error).toMatch(/throw/);
    expect(harness.resultOf(3n).error).toBe('');
  });

  it('reports exactly the keys of its statistics', () => {
    const harness = new LoopHarness({ modelType: 'V1' }).run(
      makeRequest(1n, prompt(5), 3),
      makeRequest(2n, prompt(2), 1),
    );
    const reports = harness.statsJson.map((json) => JSON.parse(json));
    expect(reports[0]).toEqual({
      'Active Request Count': 2,
      'Context Requests': 2,
      'Empty Generation Slots': 0,
      'Free KV cache blocks': 62,
      'Iteration Counter': 1,
      'Max KV cache blocks': 64,
      'Max Request Count': 8,
      'Paused Requests': 0,
      'Runtime CPU Memory Usage': expect.any(Number),
      'Runtime GPU Memory Usage': 0,
      'Runtime Pinned Memory Usage': 0,
      'Scheduled Requests': 2,
      Timestamp: expect.any(String),
      'Tokens per KV cache block': 8,
      'Total Context Tokens': 7,
      'Total Generation Tokens': 2,
      'Used KV cache blocks': 2,
    });
    expect(reports[1]).toMatchObject({
      'Context Requests': 0,
      'Empty Generation Slots': 1,
      'Scheduled Requests': 1,
      'Total Context Tokens': 0,
      'Total Generation Tokens': 1,
    });
  });
});
