import { describe, expect, it } from 'vitest';
import { FINISH_CANCELLED, FINISH_END_ID, FINISH_LENGTH } from '../../callbacks/response-batch.js';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import {
  bool,
  f32,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  tensorOf,
  u64,
} from '../../tools/support/loop-harness.js';

const prompt = (length: number, salt = 0) => Array.from({ length }, (_, i) => 1 + ((7 * i + 13 * salt) % 90));
const several = (count: number): Record<string, Tensor> => ({
  num_return_sequences: i32(count),
  temperature: f32(0.8),
  random_seed: u64(5n),
  return_log_probs: bool(true),
});

function run(requests: readonly InferenceRequest[], options: HarnessOptions = {}): LoopHarness {
  const harness = new LoopHarness(options).run(...requests);
  expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  return harness;
}

/** Tokens and log-probs of each sequence of a request. */
function answers(harness: LoopHarness, requestId: bigint, count: number) {
  return Array.from({ length: count }, (_, index) => {
    const { tokens, logProbs, finishReason } = harness.sequenceOf(requestId, index);
    return { tokens, logProbs, finishReason };
  });
}

describe('several sequences from one prompt', () => {
  it('compute the prompt once, share its full blocks and draw with the numbers of their own index', () => {
    const harness = new LoopHarness({ tokensPerBlock: 8 });
    harness.waiting.push(makeRequest(1n, prompt(20), 10, several(3)));
    harness.loop.iterate();
    // Two full blocks shared, and the block with the 4 last tokens once for each.
    expect(harness.stats[0]).toMatchObject({ contextTokens: 20, heldBlocks: 5 });
    harness.runToEnd();
    expect(harness.stats.at(-1)).toMatchObject({ heldBlocks: 0 });
    const found = answers(harness, 1n, 3);
    expect(new Set(found.map(({ tokens }) => tokens.join())).size).toBe(3);
    for (const { tokens, finishReason } of found) {
      expect(tokens.length).toBe(10);
      expect(finishReason).toBe(FINISH_LENGTH);
    }
  });

  it('have a first sequence that is the one of a request for one', () => {
    const three = run([makeRequest(1n, prompt(20), 10, several(3))]);
    const { num_return_sequences: _, ...one } = several(1);
    const alone = run([makeRequest(1n, prompt(20), 10, one)]).resultOf(1n);
    expect(answers(three, 1n, 3)[0]).toMatchObject({ tokens: alone.tokens, logProbs: alone.logProbs });
  });

  it('end one by one, each told with its index; the last one is final, and the seed comes with each end', () => {
    // A tenth of the vocabulary ends a sequence.
    const stops = encodeWordList(Array.from({ length: 10 }, (_, i) => [40 + i]));
    const inputs = { ...several(4), stop_words_list: stops };
    const harness = run([makeRequest(1n, prompt(9), 30, inputs)]);
    const ends = harness.responses.filter(({ outputs }) => tensorOf(outputs, 'random_seed'));
    expect(ends.length).toBe(4);
    expect(harness.responses.filter(({ final }) => final)).toEqual([harness.responses.at(-1)]);
    const found = answers(harness, 1n, 4);
    expect(new Set(found.map(({ tokens }) => tokens.length)).size).toBeGreaterThan(1);
    for (const { tokens } of found.filter(({ finishReason }) => finishReason !== FINISH_LENGTH)) {
      expect(tokens.findIndex((token) => token >= 40 && token < 50)).toBe(tokens.length - 1);
    }
  });

  it('may all end at once, or with the first token', () => {
    const all = encodeWordList(Array.from({ length: 100 }, (_, i) => [i]));
    for (const streaming of [true, false]) {
      const harness = run([
        makeRequest(1n, prompt(9), 30, { ...several(3), stop_words_list: all, streaming: bool(streaming) }),
      ]);
      expect(harness.responses.length).toBe(3);
      expect(harness.responses.map(({ final }) => final)).toEqual([false, false, true]);
      expect(harness.responses.map(({ outputs }) => tensorOf(outputs, 'sequence_index')?.data[0])).toEqual([
        0, 1, 2,
      ]);
    }
  });

  it('ends a sequence with end_id, which is not part of it', () => {
    const { tokens } = answers(run([makeRequest(1n, prompt(9), 10, several(2))]), 1n, 2)[1]!;
    const harness = run([makeRequest(1n, prompt(9), 10, { ...several(2), end_id: i32(tokens[4]!) })]);
    const second = answers(harness, 1n, 2)[1]!;
    expect(second.finishReason).toBe(FINISH_END_ID);
    expect(second.tokens).toEqual(tokens.slice(0, tokens.indexOf(tokens[4]!)));
  });

  it('answers whole without streaming, a response for each', () => {
    const streamed = run([makeRequest(1n, prompt(20), 10, several(3))]);
    const harness = run([makeRequest(1n, prompt(20), 10, { ...several(3), streaming: bool(false) })]);
    expect(harness.responses.length).toBe(3);
    for (const [index, { outputs, final }] of harness.responses.entries()) {
      expect(final).toBe(index === 2);
      const ids = tensorOf(outputs, 'output_ids')!;
      expect(ids.shape).toEqual([1, 1, 64]);
      expect([...ids.data.slice(0, 30)]).toEqual([...prompt(20), ...streamed.sequenceOf(1n, index).tokens]);
    }
  });

  it('tells of its prompt once', () => {
    const inputs = { ...several(3), return_context_logits: bool(true), streaming: bool(false) };
    const harness = run([makeRequest(1n, prompt(6), 4, inputs)]);
    const logits = harness.responses.map(({ outputs }) => tensorOf(outputs, 'context_logits')!.shape);
    expect(logits).toEqual([
      [1, 6, 100],
      [1, 1, 1],
      [1, 1, 1],
    ]);
    const cached = harness.responses.filter(({ outputs }) => tensorOf(outputs, 'cached_tokens'));
    expect(cached.length).toBe(1);
  });
});

describe('the best of several sequences', () => {
  const ask = (numReturned: number, bestOf: number, more: Record<string, Tensor> = {}) =>
    makeRequest(1n, prompt(9), 12, {
      ...several(numReturned),
      best_of: i32(bestOf),
      streaming: bool(false),
      ...more,
    });

  it('are those of the greatest mean log-prob, the best first', () => {
    const stops = encodeWordList(Array.from({ length: 10 }, (_, i) => [40 + i]));
    const all = answers(run([ask(6, 6, { stop_words_list: stops })]), 1n, 6);
    const mean = ({ logProbs }: { logProbs: number[] }) => logProbs.reduce((a, b) => a + b) / logProbs.length;
    const best = all.toSorted((a, b) => mean(b) - mean(a)).slice(0, 2);
    expect(new Set(all.map(({ logProbs }) => logProbs.length)).size).toBeGreaterThan(1);
    expect(answers(run([ask(2, 6, { stop_words_list: stops })]), 1n, 2)).toEqual(best);
  });

  it('do not report log-probs that were not asked for', () => {
    const harness = run([ask(1, 3, { return_log_probs: bool(false) })]);
    expect(harness.responses.length).toBe(1);
    expect(tensorOf(harness.responses[0]!.outputs, 'output_log_probs')).toBeUndefined();
    expect(tensorOf(harness.responses[0]!.outputs, 'sequence_index')).toBeUndefined();
  });
});

describe('several sequences under pressure', () => {
  const crowd = (): InferenceRequest[] =>
    Array.from({ length: 9 }, (_, index) => {
      const count = 1 + (index % 4);
      const stops = index % 2 === 0 ? { stop_words_list: encodeWordList([[3], [30], [60], [90]]) } : {};
      return makeRequest(BigInt(index + 1), prompt(3 + 4 * index, index), 20 - index, {
        ...several(count),
        ...stops,
        random_seed: u64(BigInt(index)),
        streaming: bool(index % 3 !== 0),
      });
    });
  const single = ({ inputs }: InferenceRequest) => Number(inputs.num_return_sequences!.data[0]) === 1;

  it.each([
    ['GUARANTEED_NO_EVICT', {}],
    ['GUARANTEED_NO_EVICT', { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: 16 }],
    ['MAX_UTILIZATION', {}],
    ['MAX_UTILIZATION', { chunkingPolicy: 'EQUAL_PROGRESS', maxNumTokens: 24 }],
    ['MAX_UTILIZATION', { enableTrtOverlap: true, minMicroBatchSize: 1 }],
    ['MAX_UTILIZATION', { stages: 3 }],
    ['MAX_UTILIZATION', { enableBlockReuse: true }],
    ['MAX_UTILIZATION', { modelType: 'InflightBatching', enableBlockReuse: true }],
    ['GUARANTEED_NO_EVICT', { modelType: 'V1' }],
  ] as const)(
    '%s with %o: each request answers as alone, and pauses restore all',
    (schedulerPolicy, more) => {
      const options = { schedulerPolicy, numBlocks: 22, maxNumSequences: 9, ...more };
      const { enableBlockReuse: _, ...plain } = options as HarnessOptions;
      const harness = new LoopHarness(options).run(...crowd());
      expect(harness.kvCache.freeBlocks).toBe(22);
      for (const request of crowd()) {
        const alone = run([request], plain);
        const count = Number(request.inputs.num_return_sequences!.data[0]);
        if (single(request)) {
          const { numResponses: __, ...expected } = alone.resultOf(request.requestId);
          expect(harness.resultOf(request.requestId)).toMatchObject(expected);
        } else {
          expect(answers(harness, request.requestId, count)).toEqual(
            answers(alone, request.requestId, count),
          );
        }
      }
      const pauses = harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0);
      if (schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
      expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
    },
  );

  it('V1 runs sequences that have ended on as empty slots', () => {
    const { tokens } = answers(run([makeRequest(1n, prompt(9), 10, several(3))]), 1n, 3)[1]!;
    const inputs = { ...several(3), end_id: i32(tokens[2]!) };
    const harness = run([makeRequest(1n, prompt(9), 10, inputs)], { modelType: 'V1' });
    const lengths = answers(harness, 1n, 3).map(({ tokens: own }) => own.length);
    // A slot is empty from the step after the one that drew its end until the last sequence has ended.
    const steps = Math.max(...lengths) - 1;
    const empty = lengths.reduce((sum, length) => sum + Math.max(0, steps - length), 0);
    expect(empty).toBeGreaterThan(0);
    expect(harness.stats.reduce((sum, stats) => sum + stats.emptyGenerationSlots, 0)).toBe(empty);
  });
});

describe('stopping one of several sequences', () => {
  it.each([0, 1, 4])('in iteration %i leaves the others as they were', (iteration) => {
    const request = makeRequest(1n, prompt(20), 10, several(3));
    const options = { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: 16 } as const;
    const whole = answers(run([request], options), 1n, 3);
    const harness = new LoopHarness(options);
    harness.waiting.push(request);
    for (let i = 0; i < iteration; i++) harness.loop.iterate();
    harness.sequenceStops.push(
      { requestId: 1n, index: 1 },
      { requestId: 1n, index: 7 },
      { requestId: 9n, index: 0 },
    );
    harness.runToEnd();
    const found = answers(harness, 1n, 3);
    expect([found[0], found[2]]).toEqual([whole[0], whole[2]]);
    expect(found[1]!.finishReason).toBe(FINISH_CANCELLED);
    expect(found[1]!.tokens).toEqual(whole[1]!.tokens.slice(0, found[1]!.tokens.length));
    expect(found[1]!.tokens.length).toBeLessThan(10);
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('ends the request with the last of them', () => {
    const harness = new LoopHarness();
    harness.waiting.push(makeRequest(1n, prompt(20), 10, several(2)));
    harness.loop.iterate();
    harness.sequenceStops.push({ requestId: 1n, index: 0 }, { requestId: 1n, index: 1 });
    harness.runToEnd();
    expect(harness.responses.at(-1)).toMatchObject({ final: true, error: '' });
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('waits for a step that runs', () => {
    const harness = new LoopHarness({ enableTrtOverlap: true, minMicroBatchSize: 1 });
    for (const id of [1n, 2n]) harness.waiting.push(makeRequest(id, prompt(20), 10, several(2)));
    for (let i = 0; i < 4; i++) harness.loop.iterate();
    for (const requestId of [1n, 2n]) harness.sequenceStops.push({ requestId, index: 0 });
    harness.runToEnd();
    const whole = answers(run([makeRequest(1n, prompt(20), 10, several(2))]), 1n, 2);
    for (const id of [1n, 2n]) {
      expect(answers(harness, id, 2)[1]).toEqual(whole[1]);
      expect(answers(harness, id, 2)[0]!.finishReason).toBe(FINISH_CANCELLED);
    }
  });
});

describe('what cannot be asked of several sequences', () => {
  it.each([
    [{ num_return_sequences: i32(0) }, /num_return_sequences is 0; it must be an integer from 1/],
    [{ num_return_sequences: i32(3), best_of: i32(2) }, /best_of is 2; num_return_sequences asks for 3/],
    [
      { best_of: i32(2) },
      /best_of is refused together with streaming: which sequences are the best is known at their end only/,
    ],
    [
      { num_return_sequences: i32(2), return_generation_logits: bool(true) },
      /return_generation_logits is refused together with num_return_sequences: the logits of several sequences are not returned/,
    ],
    [{ num_return_sequences: i32(9) }, /9 sequences are asked for; an iteration takes at most 8/],
    [
      { best_of: i32(2 ** 31 - 1), streaming: bool(false) },
      /2147483647 sequences are asked for; an iteration/,
    ],
    [{ num_return_sequences: i32(8) }, /20 tokens and 40 new tokens in 8 sequences need 50 KV cache blocks/],
  ])('%o is refused', (inputs, message) => {
    const harness = new LoopHarness({ numBlocks: 40 }).run(makeRequest(1n, prompt(20), 40, inputs));
    expect(harness.resultOf(1n).error).toMatch(message);
    expect(tensorOf(harness.responses[0]!.outputs, 'invalid_request')).toBeDefined();
  });

  it('is refused past an attention window, since they share blocks, and served within it', () => {
    const options = { maxAttentionWindow: 20 };
    const harness = new LoopHarness(options).run(
      makeRequest(1n, prompt(20), 5, several(2)),
      makeRequest(2n, prompt(19), 5, several(2)),
    );
    expect(harness.resultOf(1n).error).toMatch(
      /2 sequences of up to 25 tokens are asked for \(beam_width, num_return_sequences or best_of\); past the 24 tokens that their attention window \(maxAttentionWindow\) keeps/,
    );
    expect(answers(harness, 2n, 2).map(({ tokens }) => tokens.length)).toEqual([5, 5]);
  });
});
