import { describe, expect, it } from 'vitest';
import type { InferenceRequest, Tensor } from '../../../callbacks/types.js';
import type { DraftPolicy } from '../../../engine/speculation/draft-policy.js';
import { Speculation } from '../../../engine/speculation/speculation.js';
import {
  bool,
  f32,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  text,
  u64,
} from '../../../tools/support/loop-harness.js';
import { InlineGuideThread } from '../../support/inline-guide-thread.js';
import { RandomDrafts } from '../../support/random-drafts.js';

/** The fake executor's vocabulary: characters, and some longer tokens; the others have no bytes. 99 ends an answer. */
const END = 99;
const ALPHABET = [
  ...'0123456789abcdefghijklmnopqrstuvwxyz{}[]":, _\n',
  'pro',
  'perty',
  'name',
  '":',
  '{"',
  'long_',
];
const BYTES = Array.from({ length: 100 }, (_, token) =>
  ALPHABET[token] ? Buffer.from(ALPHABET[token]) : null,
);
const SCHEMA = JSON.stringify({
  type: 'object',
  properties: {
    first_long_property_name: { type: 'integer', minimum: 0, maximum: 999 },
    another_long_property_name: { enum: ['the_only_choice_that_there_is'] },
    third_long_property_name: { type: 'boolean' },
  },
  required: ['first_long_property_name', 'another_long_property_name', 'third_long_property_name'],
  additionalProperties: false,
});
const textOf = (tokens: readonly number[]) => tokens.map((token) => ALPHABET[token] ?? '').join('');

function follows(id: bigint, inputs: Record<string, Tensor> = {}): InferenceRequest {
  return makeRequest(id, [60 + Number(id), 62], 180, {
    guided_decoding_guide_type: text('json_schema'),
    guided_decoding_guide: text(SCHEMA),
    end_id: i32(END),
    temperature: f32(1.5),
    random_seed: u64(id),
    return_log_probs: bool(true),
    ...inputs,
  });
}
const plain = (id: bigint) =>
  makeRequest(id, [60 + Number(id), 61], 90, {
    temperature: f32(1.5),
    random_seed: u64(id),
    end_id: i32(END),
  });

const noDrafts = (): DraftPolicy => new Speculation({ usesNgrams: false, maxDraftLen: 0, maxRows: 64 });
const WIDE = { maxSeqLen: 200, numBlocks: 256, maxNumTokens: 128 };
const STEP_BY_STEP: HarnessOptions = WIDE;
const jumping = (options: HarnessOptions = {}): HarnessOptions => ({
  ...WIDE,
  drafts: noDrafts(),
  maxDraftRows: 32,
  ...options,
});

function newHarness(options: HarnessOptions): { harness: LoopHarness; thread: InlineGuideThread } {
  const thread = new InlineGuideThread(BYTES);
  return { harness: new LoopHarness({ ...options, guideThread: thread }), thread };
}

function run(options: HarnessOptions, requests: readonly InferenceRequest[]) {
  const { harness, thread } = newHarness(options);
  harness.run(...requests);
  const sum = (name: 'draftedTokens' | 'acceptedDraftTokens' | 'pausedRequests') =>
    harness.stats.reduce((total, stats) => total + stats[name], 0);
  return { harness, thread, sum, steps: harness.stats.length };
}

/** The part of an answer that does not depend on the steps: all but the number of its responses. */
function answerOf(harness: LoopHarness, id: bigint) {
  const { numResponses, ...answer } = harness.resultOf(id);
  return answer;
}

const aloneStepByStep = (request: InferenceRequest) => {
  const { numResponses, ...answer } = runAlone(request, {
    ...STEP_BY_STEP,
    guideThread: new InlineGuideThread(BYTES),
  });
  return answer;
};

describe('what a guide leaves no choice about', () => {
  it.each([1n, 2n, 3n, 4n])('is verified in few steps, and changes no bit of the answer, seed %s', (seed) => {
    const stepwise = run(STEP_BY_STEP, [follows(seed)]);
    const jumped = run(jumping(), [follows(seed)]);
    expect(answerOf(jumped.harness, seed)).toEqual(answerOf(stepwise.harness, seed));
    expect(JSON.parse(textOf(answerOf(jumped.harness, seed).tokens))).toHaveProperty(
      'third_long_property_name',
    );
    expect(stepwise.sum('draftedTokens')).toBe(0);
    expect(jumped.sum('acceptedDraftTokens')).toBeGreaterThan(10);
    expect(jumped.steps).toBe(stepwise.steps - jumped.sum('acceptedDraftTokens'));
  });

  it.each<[string, HarnessOptions]>([
    ['together', {}],
    ['two micro-batches in turns', { enableTrtOverlap: true, minMicroBatchSize: 1 }],
    ['contexts and generation apart', { modelType: 'InflightBatching' }],
    ['few draft rows', { maxDraftRows: 3 }],
    ['paused', { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 30 }],
    ['paused, blocks shared', { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 30, enableBlockReuse: true }],
    [
      'paused, resumed with few tokens',
      { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 30, maxNumTokens: 40 },
    ],
    ['hardly any room', { numBlocks: 26 }],
  ])('changes neither answers nor neighbours in a crowd: %s', (_, options) => {
    const requests = Array.from({ length: 6 }, (_, i) =>
      i % 2 === 0 ? plain(BigInt(i)) : follows(BigInt(i)),
    );
    const { harness, sum } = run(jumping(options), requests);
    for (const request of requests) {
      expect(answerOf(harness, request.requestId)).toEqual(aloneStepByStep(request));
    }
    expect(sum('acceptedDraftTokens')).toBeGreaterThan(10);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(sum('pausedRequests')).toBeGreaterThan(0);
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
  });

  it('goes beside the drafts of others, right and wrong ones', () => {
    const requests = [plain(0n), follows(1n), plain(2n), follows(3n)];
    const alone = new Map(requests.map((request) => [request.requestId, aloneStepByStep(request)]));
    const policy = new RandomDrafts(5, 100, (id) => [60 + Number(id), 61, ...alone.get(id)!.tokens]);
    const { harness, sum } = run(jumping({ drafts: policy }), requests);
    for (const { requestId } of requests) expect(answerOf(harness, requestId)).toEqual(alone.get(requestId));
    expect(policy.accepted).toBeGreaterThan(10);
    expect(sum('acceptedDraftTokens') - policy.accepted).toBeGreaterThan(10);
  });

  it.each<[string, Record<string, Tensor>]>([
    ['asks for no drafts', { max_draft_len: i32(0) }],
    ['has several sequences', { num_return_sequences: i32(2) }],
    ['returns its logits', { return_generation_logits: bool(true) }],
  ])('is drawn step by step where the request %s', (_, inputs) => {
    const { sum, thread } = run(jumping(), [follows(1n, inputs)]);
    expect(sum('draftedTokens')).toBe(0);
    expect(thread.requests.some(({ type }) => type === 'mask')).toBe(true);
  });

  it('has at most the tokens that the request allows', () => {
    const { harness, sum } = run(jumping(), [follows(1n, { max_draft_len: i32(2) })]);
    expect(answerOf(harness, 1n)).toEqual(aloneStepByStep(follows(1n)));
    expect(Math.max(...harness.stats.map(({ draftedTokens }) => draftedTokens))).toBe(2);
    expect(sum('acceptedDraftTokens')).toBeGreaterThan(10);
  });

  it('that the thread says too late is not used', () => {
    const { harness, thread } = newHarness(jumping());
    const receive = thread.receive.bind(thread);
    const late: NonNullable<ReturnType<typeof receive>>[] = [];
    let masked = 0;
    thread.receive = () => {
      const reply = receive();
      if (reply?.type === 'masked') masked++;
      if (reply?.type !== 'forced') return reply;
      // Each comes with the masks after the next ones.
      late.push(reply);
      return late.length > 2 ? late.shift() : receive();
    };
    harness.run(follows(1n));
    expect(answerOf(harness, 1n)).toEqual(aloneStepByStep(follows(1n)));
    expect(masked).toBeGreaterThan(20);
    expect(harness.stats.every(({ draftedTokens }) => draftedTokens === 0)).toBe(true);
  });

  it('is the same where the thread dies while a draft is out, and another one goes on', () => {
    const { harness, thread } = newHarness(jumping());
    const beside = plain(2n);
    let drafts = 0;
    thread.onRequest = (request) => {
      // The fourth number of an entry is the length of its draft.
      if (request.type === 'mask' && request.entries[3]! > 0 && ++drafts === 2) thread.stop();
    };
    harness.run(follows(1n), beside);
    expect(drafts).toBeGreaterThan(2);
    expect(thread.starts).toBe(2);
    expect(answerOf(harness, 1n)).toEqual(aloneStepByStep(follows(1n)));
    expect(answerOf(harness, 2n)).toEqual(aloneStepByStep(beside));
    expect(harness.kvCache.stats().usedBlocks).toBe(0);
  });
});
