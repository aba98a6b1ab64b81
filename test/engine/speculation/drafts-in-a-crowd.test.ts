import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeWordList } from '../../../callbacks/stop-words.js';
import { CHUNKING_POLICIES } from '../../../scheduler/tokens/types.js';
import {
  type HarnessOptions,
  LoopHarness,
  makeRequest,
  runAlone,
} from '../../../tools/support/loop-harness.js';
import { type CrowdArrival, crowdInputs, runCrowd } from '../../support/loop-crowd.js';
import { RandomDrafts } from '../../support/random-drafts.js';
import { draws } from '../../support/scale.js';

interface Arrival extends CrowdArrival {
  prompt: number[];
}

const word = fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 2 });

/** With logits: the fake executor mostly draws the draft's token there, so that such drafts are often right. */
const ownDraft = (tokens: readonly number[]) => ({
  draft_input_ids: { shape: [tokens.length], data: Int32Array.from(tokens) },
  draft_logits: {
    shape: [tokens.length, 100],
    data: Float32Array.from({ length: tokens.length * 100 }, (_, i) => (i * 37) % 11),
  },
});

const arrival = (index: number): fc.Arbitrary<Arrival> =>
  fc
    .record({
      prompt: fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 30 }),
      maxNewTokens: fc.oneof(fc.integer({ min: 1, max: 34 }), fc.integer({ min: 24, max: 34 })),
      samples: fc.boolean(),
      penalty: fc.boolean(),
      logProbs: fc.integer({ min: 0, max: 2 }),
      minLength: fc.integer({ min: 0, max: 8 }),
      endId: fc.option(fc.integer({ min: 0, max: 99 }), { nil: -1, freq: 1 }),
      stopWord: fc.option(word, { nil: null, freq: 1 }),
      badWords: fc.option(fc.array(word, { minLength: 1, maxLength: 3 }), { nil: null }),
      draft: fc.option(fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 12 }), {
        nil: null,
      }),
      priority: fc.constantFrom(0.1, 0.5, 0.9),
      arrivalIteration: fc.integer({ min: 0, max: 10 }),
      cancelAfter: fc.option(fc.integer({ min: 0, max: 40 }), { nil: null, freq: 1 }),
    })
    .map((shape) => ({
      request: makeRequest(
        BigInt(index),
        shape.prompt,
        shape.maxNewTokens,
        {
          ...crowdInputs(index, shape),
          ...(shape.draft ? ownDraft(shape.draft) : {}),
          ...(shape.badWords ? { bad_words_list: encodeWordList(shape.badWords) } : {}),
        },
        shape.priority,
      ),
      prompt: shape.prompt,
      arrivalIteration: shape.arrivalIteration,
      cancelIteration: shape.cancelAfter === null ? null : shape.arrivalIteration + shape.cancelAfter,
    }));

const arrivals = fc
  .integer({ min: 4, max: 16 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => arrival(index))));

const engine: fc.Arbitrary<HarnessOptions> = fc
  .record({
    modelType: fc.constantFrom('InflightFusedBatching' as const, 'InflightBatching' as const),
    schedulerPolicy: fc.constantFrom('MAX_UTILIZATION' as const, 'GUARANTEED_NO_EVICT' as const),
    chunkingPolicy: fc.constantFrom(undefined, ...CHUNKING_POLICIES),
    // A sequence of 64 tokens needs 8 blocks.
    numBlocks: fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: 8, max: 11 }) },
      fc.integer({ min: 16, max: 40 }),
    ),
    maxNumTokens: fc.integer({ min: 32, max: 64 }),
    maxNumSequences: fc.integer({ min: 2, max: 8 }),
    maxInputLen: fc.constantFrom(30, 36, 64),
    maxDraftRows: fc.integer({ min: 1, max: 24 }),
    enableTrtOverlap: fc.boolean(),
    enableBlockReuse: fc.boolean(),
    minMicroBatchSize: fc.integer({ min: 1, max: 3 }),
    stages: fc.constantFrom(1, 1, 2, 3),
    areStagesEager: fc.boolean(),
    begunStepsRun: fc.constantFrom('at-begin' as const, 'at-finish' as const),
  })
  .map(({ chunkingPolicy, begunStepsRun, enableBlockReuse, ...rest }) => ({
    ...rest,
    ...(chunkingPolicy === undefined ? {} : { chunkingPolicy }),
    enableBlockReuse,
    fake: { begunStepsRun },
  }));

describe('requests with drafts that are right, wrong or right in part', () => {
  it('get bit for bit what they get alone without drafts, and give back every block', () => {
    let pauses = 0;
    let accepted = 0;
    let drafted = 0;
    let overlapped = 0;
    fc.assert(
      fc.property(engine, arrivals, fc.integer(), (options, crowd, seed) => {
        const alone = crowd.map(({ request }) => runAlone(request, { maxNumTokens: 64 }));
        const answerOf = (id: bigint) => [...crowd[Number(id)]!.prompt, ...alone[Number(id)]!.tokens];
        const drafts = new RandomDrafts(seed, 100, answerOf);
        // The harness checks the KV cache after every iteration.
        const harness = runCrowd(new LoopHarness({ ...options, drafts }), crowd, 50);
        expect(harness.errors).toEqual([]);
        expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
        for (const { request } of crowd) {
          const found = harness.resultOf(request.requestId);
          const { numResponses: _, ...expected } = alone[Number(request.requestId)]!;
          expect(found.error).toBe('');
          if (found.finishReason === 5) {
            expect(found.tokens).toEqual(expected.tokens.slice(0, found.tokens.length));
            expect(found.logProbs).toEqual(expected.logProbs.slice(0, found.logProbs.length));
          } else expect(found).toMatchObject(expected);
        }
        expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
        pauses += harness.stats.at(-1)!.totalPauses;
        for (const { microBatchId } of harness.stats) overlapped += microBatchId;
        accepted += drafts.accepted;
        drafted += drafts.drafted;
        const sum = (count: 'drafts' | 'draftedTokens') =>
          harness.stats.reduce((total, stats) => total + stats[count], 0);
        expect(sum('draftedTokens')).toBe(drafts.drafted);
        expect(sum('drafts')).toBeLessThanOrEqual(drafts.drafted);
      }),
      { numRuns: draws(30) },
    );
    // Only histories in which all of it happens are worth something.
    expect(pauses).toBeGreaterThan(6);
    expect(accepted).toBeGreaterThan(300);
    expect(drafted - accepted).toBeGreaterThan(300);
    expect(overlapped).toBeGreaterThan(30);
  });

  it('pause nobody: what runs and what is paused is decided without them', () => {
    let drafted = 0;
    fc.assert(
      fc.property(engine, fc.integer(), (asked, seed) => {
        const policy = { schedulerPolicy: 'MAX_UTILIZATION' as const, enableTrtOverlap: false, stages: 1 };
        // No token is generated a second time: those that are known are drafts that are right.
        const options = { ...asked, ...policy, maxInputLen: 64, maxNumTokens: 64 };
        const prompts = Array.from({ length: 6 }, (_, i) => [i + 1, 2, 3, 4]);
        const crowd = prompts.map((prompt, i) => makeRequest(BigInt(i), prompt, 40));
        const answers = crowd.map((request, i) => [...prompts[i]!, ...runAlone(request).tokens]);
        // Every first token is wrong, so that each request advances as without drafts.
        const drafts = new RandomDrafts(
          seed,
          100,
          (id) => answers[Number(id)]!.map((token) => (token + 1) % 100),
          0,
        );
        const [without, withDrafts] = [options, { ...options, drafts }].map((each) => {
          const harness = new LoopHarness(each).run(...crowd);
          return harness.stats.map(({ scheduledRequests, pausedRequests }) => [
            scheduledRequests,
            pausedRequests,
          ]);
        });
        expect(withDrafts).toEqual(without);
        expect(drafts.accepted).toBe(0);
        drafted += drafts.drafted;
      }),
      { numRuns: draws(12) },
    );
    expect(drafted).toBeGreaterThan(300);
  });
});
