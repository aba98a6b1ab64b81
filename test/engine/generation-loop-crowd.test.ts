import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHUNKING_POLICIES } from '../../scheduler/tokens/types.js';
import {
  bool,
  collectResult,
  type HarnessOptions,
  LoopHarness,
  makeRequest,
  type RequestResult,
  runAlone,
} from '../../tools/support/loop-harness.js';
import { type CrowdArrival, crowdInputs, runCrowd } from '../support/loop-crowd.js';
import { draws } from '../support/scale.js';

const arrival = (index: number): fc.Arbitrary<CrowdArrival> =>
  fc
    .record({
      prompt: fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 30 }),
      maxNewTokens: fc.oneof(fc.integer({ min: 1, max: 34 }), fc.integer({ min: 28, max: 34 })),
      samples: fc.boolean(),
      penalty: fc.boolean(),
      streaming: fc.boolean(),
      logProbs: fc.integer({ min: 0, max: 2 }),
      endId: fc.option(fc.integer({ min: 0, max: 99 }), { nil: -1, freq: 1 }),
      minLength: fc.integer({ min: 0, max: 5 }),
      stopWord: fc.option(fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 2 }), {
        nil: null,
        freq: 1,
      }),
      priority: fc.constantFrom(0.1, 0.5, 0.9),
      arrivalIteration: fc.integer({ min: 0, max: 25 }),
      cancelAfter: fc.option(fc.integer({ min: 0, max: 40 }), { nil: null, freq: 5 }),
    })
    .map((shape) => ({
      request: makeRequest(
        BigInt(index),
        shape.prompt,
        shape.maxNewTokens,
        {
          ...crowdInputs(index, shape),
          streaming: bool(shape.streaming),
        },
        shape.priority,
      ),
      arrivalIteration: shape.arrivalIteration,
      cancelIteration: shape.cancelAfter === null ? null : shape.arrivalIteration + shape.cancelAfter,
    }));

const arrivals = fc
  .integer({ min: 8, max: 24 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => arrival(index))));

const engine: fc.Arbitrary<HarnessOptions> = fc
  .record({
    modelType: fc.constantFrom(
      'InflightFusedBatching' as const,
      'InflightFusedBatching' as const,
      'InflightBatching' as const,
      'V1' as const,
    ),
    schedulerPolicy: fc.constantFrom('MAX_UTILIZATION' as const, 'GUARANTEED_NO_EVICT' as const),
    chunkingPolicy: fc.constantFrom(undefined, ...CHUNKING_POLICIES),
    // A sequence of 64 tokens needs 8 blocks: every pool here is far too small for the crowd.
    numBlocks: fc.integer({ min: 8, max: 11 }),
    maxNumTokens: fc.integer({ min: 32, max: 48 }),
    maxNumSequences: fc.integer({ min: 2, max: 8 }),
    maxInputLen: fc.constantFrom(30, 36, 64),
    overlap: fc.boolean(),
    minMicroBatchSize: fc.integer({ min: 1, max: 3 }),
    stages: fc.constantFrom(1, 1, 2, 3),
    areStagesEager: fc.boolean(),
    begunStepsRun: fc.constantFrom('at-begin' as const, 'at-finish' as const),
  })
  .map(({ chunkingPolicy, overlap, begunStepsRun, ...rest }) => {
    const isV1 = rest.modelType === 'V1';
    const chunking = chunkingPolicy === undefined || isV1 ? {} : { chunkingPolicy };
    return { ...rest, ...chunking, enableTrtOverlap: overlap && !isV1, fake: { begunStepsRun } };
  });

/** Checks what must hold after every iteration. */
function checkedHarness(options: HarnessOptions): LoopHarness {
  const harness = new LoopHarness(options);
  harness.onResponse = ({ requestId, final }) => {
    if (final) expect(harness.kvCache.hasSequence(requestId)).toBe(false);
  };
  return harness;
}

/** A cancelled request has a beginning of what it has alone; every other one has exactly that. */
function expectSameAsAlone(
  found: RequestResult,
  alone: RequestResult,
  wasStreaming: boolean,
  prompt: number,
): void {
  expect(found.error).toBe('');
  if (found.finishReason === 5) {
    const length = found.sequenceLength - prompt;
    const skip = wasStreaming ? 0 : prompt;
    expect(found.tokens.slice(skip, skip + length)).toEqual(alone.tokens.slice(skip, skip + length));
    expect(found.logProbs).toEqual(alone.logProbs.slice(0, found.logProbs.length));
    return;
  }
  const { numResponses: _, ...expected } = alone;
  expect(found).toMatchObject(expected);
}

describe('a request in a crowd', () => {
  it('gets the tokens and log-probs that it gets alone, under every scheme and policy, with pauses, chunks and cancels', () => {
    let pauses = 0;
    let cancelled = 0;
    let emptySlots = 0;
    let overlapped = 0;
    fc.assert(
      fc.property(engine, arrivals, (options, crowd) => {
        const harness = runCrowd(checkedHarness(options), crowd, 120);
        expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
        for (const { request } of crowd) {
          const found = harness.resultOf(request.requestId);
          const alone = runAlone(request, { maxNumTokens: 64 });
          const streams = request.inputs.streaming!.data[0] === 1;
          expectSameAsAlone(found, alone, streams, request.inputs.input_ids!.data.length);
          if (found.finishReason === 5) cancelled++;
        }
        const totals = harness.stats.at(-1)!;
        expect(totals.totalReplayMismatches).toBe(0);
        if (options.schedulerPolicy === 'GUARANTEED_NO_EVICT' || options.modelType === 'V1') {
          expect(totals.totalPauses).toBe(0);
        }
        for (const { emptyGenerationSlots, microBatchId } of harness.stats) {
          emptySlots += emptyGenerationSlots;
          overlapped += microBatchId;
        }
        pauses += totals.totalPauses;
      }),
      { numRuns: draws(60) },
    );
    // The histories are only worth something if they pause and cancel a lot.
    expect(pauses).toBeGreaterThan(30);
    expect(cancelled).toBeGreaterThan(10);
    expect(emptySlots).toBeGreaterThan(30);
    expect(overlapped).toBeGreaterThan(150);
  });

  it('sends each token of a paused request once, also those generated a second time', () => {
    const options: HarnessOptions = {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 8,
      maxNumSequences: 4,
      maxInputLen: 12,
    };
    const requests = [0, 1, 2, 3].map((index) =>
      makeRequest(BigInt(index), [index + 1, 2, 3, 4], 40, { return_log_probs: bool(true) }),
    );
    const harness = new LoopHarness(options).run(...requests);
    expect(harness.stats.at(-1)!.totalPauses).toBeGreaterThan(3);
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
    for (const request of requests) {
      const responses = harness.responses.filter((response) => response.requestId === request.requestId);
      expect(collectResult(responses).tokens).toHaveLength(40);
      expect(harness.resultOf(request.requestId)).toMatchObject({ ...runAlone(request), numResponses: 40 });
    }
  });
});
