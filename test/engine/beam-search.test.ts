import { describe, expect, it } from 'vitest';
import {
  FINISH_CANCELLED,
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
} from '../../callbacks/response-batch.js';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
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
const beams = (width: number, more: Record<string, Tensor> = {}): Record<string, Tensor> => ({
  beam_width: i32(width),
  return_log_probs: bool(true),
  streaming: bool(false),
  ...more,
});

function run(requests: readonly InferenceRequest[], options: HarnessOptions = {}): LoopHarness {
  const harness = new LoopHarness({ maxBeamWidth: 8, ...options }).run(...requests);
  expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  return harness;
}

/** Each beam as the final response has it. */
function beamsOf(harness: LoopHarness, requestId: bigint) {
  const own = harness.responses.filter((response) => response.requestId === requestId);
  const { outputs, final, error } = own.at(-1)!;
  expect(error).toBe('');
  expect(final).toBe(true);
  const ids = tensorOf(outputs, 'output_ids')!;
  const [, width, maxSeqLen] = ids.shape as [number, number, number];
  const logProbs = tensorOf(outputs, 'output_log_probs')!;
  const longest = logProbs.shape[2]!;
  const promptLength = own.length > 0 ? promptLengths.get(requestId)! : 0;
  return Array.from({ length: width }, (_, beam) => {
    const length = Number(tensorOf(outputs, 'sequence_length')!.data[beam]);
    const tokens = [...ids.data.slice(beam * maxSeqLen, beam * maxSeqLen + length)].map(Number);
    const numGenerated = length - promptLength;
    return {
      prompt: tokens.slice(0, promptLength),
      tokens: tokens.slice(promptLength),
      logProbs: [...logProbs.data.slice(beam * longest, beam * longest + numGenerated)].map(Number),
      cumLogProb: Number(tensorOf(outputs, 'cum_log_probs')!.data[beam]),
      finishReason: Number(tensorOf(outputs, 'finish_reasons')!.data[beam]),
    };
  });
}

const promptLengths = new Map<bigint, number>();
function ask(requestId: bigint, promptLength: number, maxNew: number, inputs: Record<string, Tensor>) {
  promptLengths.set(requestId, promptLength);
  return makeRequest(requestId, prompt(promptLength, Number(requestId)), maxNew, inputs);
}

/** The logits from which a request with this prompt draws its first token. */
function logitsAfter(tokens: readonly number[]): number[] {
  const inputs = { return_generation_logits: bool(true), streaming: bool(false) };
  const { responses } = new LoopHarness().run(makeRequest(9n, [...tokens], 1, inputs));
  return Array.from(tensorOf(responses.at(-1)!.outputs, 'generation_logits')!.data, Number);
}

describe('beam search', () => {
  it('answers with all beams, best first, and their log-probs', () => {
    const request = ask(1n, 20, 10, beams(4));
    const harness = run([request]);
    expect(harness.responses.length).toBe(1);
    const found = beamsOf(harness, 1n);
    expect(found.length).toBe(4);
    expect(new Set(found.map(({ tokens }) => tokens.join())).size).toBe(4);
    for (const [i, { prompt: given, tokens, logProbs, cumLogProb, finishReason }] of found.entries()) {
      expect(given).toEqual(prompt(20, 1));
      expect(tokens.length).toBe(10);
      expect(logProbs.reduce((a, b) => a + b)).toBeCloseTo(cumLogProb, 4);
      expect(finishReason).toBe(FINISH_LENGTH);
      if (i > 0) expect(cumLogProb).toBeLessThanOrEqual(found[i - 1]!.cumLogProb);
    }
  });

  it('computes the prompt once and shares its full blocks', () => {
    const harness = new LoopHarness({ maxBeamWidth: 4 });
    harness.waiting.push(ask(1n, 20, 10, beams(4)));
    harness.loop.iterate();
    expect(harness.stats[0]).toMatchObject({ contextTokens: 20, heldBlocks: 2 + 4 });
    harness.runToEnd();
    expect(harness.stats.at(-1)).toMatchObject({ heldBlocks: 0 });
  });

  it('ends a beam with end_id, which is no part of it but of its sum, and with a stop word, which is', () => {
    const free = beamsOf(run([ask(1n, 9, 12, beams(4))]), 1n);
    const [endId, stop] = [free[0]!.tokens[2]!, free[0]!.tokens.slice(4, 6)];
    const ended = { end_id: i32(endId), stop_words_list: encodeWordList([stop]), early_stopping: i32(2) };
    const found = beamsOf(run([ask(1n, 9, 12, beams(4, ended))]), 1n);
    const byEndId = found.filter(({ finishReason }) => finishReason === FINISH_END_ID);
    expect(byEndId.length).toBeGreaterThan(0);
    for (const { tokens, logProbs, cumLogProb } of byEndId) {
      expect(tokens).not.toContain(endId);
      expect(cumLogProb).toBeLessThan(logProbs.reduce((a, b) => a + b, 0));
    }
    const stops = beamsOf(run([ask(1n, 9, 12, beams(4, { ...ended, end_id: i32(-1) }))]), 1n);
    const byWord = stops.filter(({ finishReason }) => finishReason === FINISH_STOP_WORDS);
    expect(byWord.length).toBeGreaterThan(0);
    for (const { tokens } of byWord) expect(tokens.slice(-2)).toEqual(stop);
  });

  it('gives fewer beams than asked for their places where hardly anything may be drawn', () => {
    // Two tokens are left, and one that ends a beam.
    const allBut = (...kept: number[]) =>
      encodeWordList(
        Array.from({ length: 100 }, (_, token) => [token]).filter(([token]) => !kept.includes(token!)),
      );
    const inputs = beams(8, { bad_words_list: allBut(7, 8, 9), end_id: i32(9) });
    const found = beamsOf(run([ask(1n, 9, 3, inputs)]), 1n);
    expect(found.length).toBe(8);
    for (const { tokens, cumLogProb } of found) {
      expect(cumLogProb).toBeGreaterThan(Number.NEGATIVE_INFINITY);
      for (const token of tokens) expect([7, 8]).toContain(token);
    }
    expect(new Set(found.map(({ tokens }) => tokens.join())).size).toBe(8);
    const alone = beamsOf(run([ask(1n, 9, 3, beams(4, { bad_words_list: allBut(7) }))]), 1n);
    expect(alone[0]!.tokens).toEqual([7, 7, 7]);
    expect(alone.slice(1).every(({ cumLogProb }) => cumLogProb === Number.NEGATIVE_INFINITY)).toBe(true);
  });

  it('streams whole beams in each iteration, which may change, and ends with what it answers without', () => {
    const whole = beamsOf(run([ask(1n, 9, 12, beams(3))]), 1n);
    const harness = run([ask(1n, 9, 12, beams(3, { streaming: bool(true) }))]);
    expect(harness.responses.length).toBe(12);
    for (const [step, { outputs, final }] of harness.responses.entries()) {
      expect(final).toBe(step === 11);
      expect(tensorOf(outputs, 'output_ids')!.shape).toEqual([1, 3, 64]);
      const lengths = [...tensorOf(outputs, 'sequence_length')!.data];
      expect(lengths).toEqual([10 + step, 10 + step, 10 + step]);
      const reasons = [...tensorOf(outputs, 'finish_reasons')!.data];
      expect(reasons).toEqual(Array(3).fill(final ? FINISH_LENGTH : FINISH_NOT_FINISHED));
    }
    expect(beamsOf(harness, 1n)).toEqual(whole);
  });

  it('reports the most probable tokens beside those of each beam, log-probs only where asked', () => {
    const harness = run([ask(1n, 9, 5, beams(3, { top_log_probs: i32(2), end_id: i32(50) }))]);
    const { outputs } = harness.responses[0]!;
    expect(tensorOf(outputs, 'top_token_ids')!.shape).toEqual([1, 3, 5, 2]);
    const tops = tensorOf(outputs, 'top_log_probs')!.data as Float32Array;
    const own = tensorOf(outputs, 'output_log_probs')!.data as Float32Array;
    for (const [i, logProb] of own.entries()) expect(tops[2 * i]!).toBeGreaterThanOrEqual(logProb);
    const without = run([ask(1n, 9, 5, beams(3, { return_log_probs: bool(false) }))]);
    expect(tensorOf(without.responses[0]!.outputs, 'output_log_probs')).toBeUndefined();
    expect(tensorOf(without.responses[0]!.outputs, 'output_ids')!.shape[1]).toBe(3);
  });

  it('returns the logits of its prompt, and a seed', () => {
    const { outputs } = run([ask(1n, 9, 5, beams(2, { return_context_logits: bool(true) }))]).responses[0]!;
    expect(tensorOf(outputs, 'context_logits')!.shape).toEqual([1, 9, 100]);
    expect(tensorOf(outputs, 'random_seed')).toBeDefined();
    expect(tensorOf(outputs, 'cached_tokens')!.data[0]).toBe(0);
  });

  it('gives post-processors the tokens of each beam', () => {
    const seen: number[][][] = [];
    const own = (_: bigint, logits: Float32Array, tokens: readonly Int32Array[]) => {
      expect(logits.length).toBe(100 * tokens.length);
      seen.push(tokens.map((beam) => [...beam]));
    };
    const inputs = beams(3, {
      logits_post_processor_name: { shape: [3], data: new TextEncoder().encode('own') },
    });
    const harness = run([ask(1n, 9, 4, inputs)], {
      postProcessors: new PostProcessors(new Map([['own', own]])),
    });
    expect(seen.map((tokens) => tokens.length)).toEqual([1, 3, 3, 3]);
    expect(seen[3]!.every((tokens) => tokens.length === 12)).toBe(true);
    const answered = beamsOf(harness, 1n).map(({ prompt: p, tokens }) =>
      [...p, ...tokens.slice(0, 3)].join(),
    );
    const known = seen[3]!.map((tokens) => tokens.join());
    for (const beam of answered) expect(known).toContain(beam);
  });

  it('fails alone where its logits are not finite', () => {
    const harness = new LoopHarness({ maxBeamWidth: 4, fake: { poisonToken: 77 } }).run(
      makeRequest(1n, [5, 77, 6], 8, beams(4)),
      ask(2n, 9, 5, beams(2)),
    );
    expect(harness.resultOf(1n).error).toMatch(/logits for token 3 of this request are not finite/);
    expect(beamsOf(harness, 2n)).toEqual(beamsOf(run([ask(2n, 9, 5, beams(2))]), 2n));
  });
});

describe('beams, several sequences and plain requests in one crowd', () => {
  const crowd = (): InferenceRequest[] =>
    Array.from({ length: 12 }, (_, index) => {
      const id = BigInt(index + 1);
      const ends = { end_id: i32(3 + index), stop_words_list: encodeWordList([[30], [60, 61], [90]]) };
      const streaming = { streaming: bool(index % 4 === 1) };
      const kinds: Record<string, Tensor>[] = [
        beams(2 + (index % 3), {
          ...ends,
          ...streaming,
          early_stopping: i32(index % 3),
          len_penalty: f32(1),
        }),
        { num_return_sequences: i32(2), temperature: f32(1), random_seed: u64(id), ...ends, ...streaming },
        { temperature: f32(1), random_seed: u64(id), ...streaming },
      ];
      return ask(id, 2 + 3 * index, 16 - (index % 5), { return_log_probs: bool(true), ...kinds[index % 3]! });
    });

  /** Everything that a request received, but for how it was cut into responses and what it took. */
  function told(harness: LoopHarness, { requestId, inputs }: InferenceRequest) {
    if (inputs.beam_width) return beamsOf(harness, requestId);
    const results = inputs.num_return_sequences
      ? [0, 1].map((index) => harness.sequenceOf(requestId, index))
      : [harness.resultOf(requestId)];
    return results.map(({ tokens, logProbs, finishReason }) => ({ tokens, logProbs, finishReason }));
  }

  it.each([
    ['GUARANTEED_NO_EVICT', {}],
    ['GUARANTEED_NO_EVICT', { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: 16 }],
    ['MAX_UTILIZATION', {}],
    ['MAX_UTILIZATION', { chunkingPolicy: 'EQUAL_PROGRESS', maxNumTokens: 24 }],
    ['MAX_UTILIZATION', { enableTrtOverlap: true, minMicroBatchSize: 1 }],
    ['MAX_UTILIZATION', { stages: 3 }],
    ['MAX_UTILIZATION', { enableBlockReuse: true, numSecondaryBlocks: 9 }],
    ['MAX_UTILIZATION', { modelType: 'InflightBatching', enableBlockReuse: true }],
    ['MAX_UTILIZATION', { maxAttentionWindow: 64 }],
    ['GUARANTEED_NO_EVICT', { modelType: 'V1' }],
  ] as const)('%s with %o: each answers as alone', (schedulerPolicy, more) => {
    const options: HarnessOptions = {
      schedulerPolicy,
      numBlocks: 26,
      maxNumSequences: 8,
      maxBeamWidth: 4,
      ...more,
    };
    const { enableBlockReuse: _, numSecondaryBlocks: __, ...plain } = options;
    const harness = new LoopHarness(options);
    const requests = crowd();
    harness.run(...requests);
    expect(harness.kvCache.freeBlocks).toBe(26);
    for (const request of requests) {
      expect(told(harness, request), `request ${request.requestId}`).toEqual(
        told(run([request], plain), request),
      );
    }
    const pauses = harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0);
    if (schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(0);
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
  });

  it.each([0, 1, 2, 5])('cancelled or out of time in iteration %i they give all blocks back', (iteration) => {
    for (const enableTrtOverlap of [false, true]) {
      const harness = new LoopHarness({
        maxBeamWidth: 4,
        maxNumTokens: 40,
        enableTrtOverlap,
        minMicroBatchSize: 1,
      });
      const timed = ask(2n, 9, 12, beams(4, { time_limit_ms: i32(5) }));
      harness.waiting.push(ask(1n, 20, 12, beams(4)), timed, ask(3n, 12, 12, beams(2)));
      for (let i = 0; i < iteration; i++) harness.loop.iterate();
      harness.stops.add(1n);
      harness.nowMs = 10;
      harness.runToEnd();
      expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
      const stopped = beamsOf(harness, 1n);
      expect(stopped.map(({ finishReason }) => finishReason)).toEqual(Array(4).fill(FINISH_CANCELLED));
      expect(beamsOf(harness, 3n)).toEqual(beamsOf(run([ask(3n, 12, 12, beams(2))]), 3n));
    }
  });

  it('paused while it streams, a search tells nothing twice', () => {
    const options = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 20, maxBeamWidth: 4 } as const;
    const requests = [1n, 2n, 3n, 4n].map((id) => ask(id, 9, 20, beams(4, { streaming: bool(true) })));
    const harness = new LoopHarness(options).run(...requests);
    expect(harness.stats.some(({ pausedRequests }) => pausedRequests > 0)).toBe(true);
    for (const { requestId } of requests) {
      const own = harness.responses.filter((response) => response.requestId === requestId);
      expect(own.map(({ outputs }) => tensorOf(outputs, 'sequence_length')!.data[0])).toEqual(
        Array.from({ length: 20 }, (_, i) => 10 + i),
      );
    }
  });
});

describe('what beam search is not asked', () => {
  it.each([
    [{ beam_width: i32(5) }, /beam_width is 5; this engine takes at most maxBeamWidth = 4/],
    [
      { num_return_sequences: i32(2) },
      /num_return_sequences is refused together with beam_width: a beam search answers with all of its beams/,
    ],
    [{ best_of: i32(2) }, /best_of is refused together with beam_width: a beam search answers with all/],
    [
      { temperature: f32(0.5) },
      /temperature is refused together with beam_width: a beam search takes the most probable tokens and draws none/,
    ],
    [
      { runtime_top_k: i32(5) },
      /runtime_top_k is refused together with beam_width: .*; leave it out or make it 1/,
    ],
    [{ runtime_top_p: f32(0.5) }, /runtime_top_p is refused/],
    [{ runtime_min_p: f32(0.5) }, /runtime_min_p is refused/],
  ])('%o', (inputs, message) => {
    const harness = new LoopHarness({ maxBeamWidth: 4 }).run(makeRequest(1n, prompt(9), 5, beams(4, inputs)));
    expect(harness.resultOf(1n).error).toMatch(message);
  });

  it('takes generation logits: each row is that from which the token of its beam was chosen', () => {
    for (const streaming of [false, true]) {
      const inputs = { return_generation_logits: bool(true), streaming: bool(streaming), end_id: i32(17) };
      const request = ask(1n, 9, 12, beams(4, inputs));
      const harness = run([request]);
      const { outputs } = harness.responses.at(-1)!;
      const { shape, data } = tensorOf(outputs, 'generation_logits')!;
      const longest = tensorOf(outputs, 'output_log_probs')!.shape[2]!;
      expect(shape).toEqual([1, 4, longest, 100]);
      const found = beamsOf(harness, 1n);
      expect(found.map(({ tokens }) => tokens)).toEqual(
        beamsOf(run([ask(1n, 9, 12, beams(4, { end_id: i32(17) }))]), 1n).map(({ tokens }) => tokens),
      );
      for (const [beam, { prompt: given, tokens }] of found.entries()) {
        for (let place = 0; place < longest; place++) {
          const start = 100 * (beam * longest + place);
          const row = Array.from(data.subarray(start, start + 100), Number);
          if (place >= tokens.length) expect(new Set(row)).toEqual(new Set([0]));
          else expect(row).toEqual(logitsAfter([...given, ...tokens.slice(0, place)]));
        }
      }
    }
  });

  it('counts the rows that its beams hold', () => {
    const inputs = beams(4, { return_generation_logits: bool(true) });
    const row = 4 * 100;
    const take = (rows: number) =>
      new LoopHarness({ maxBeamWidth: 4, maxReturnedLogitsBytes: rows * row })
        .run(makeRequest(1n, prompt(9), 5, inputs))
        .resultOf(1n).error;
    expect(take(3 * 4 * 5)).toBe('');
    expect(take(3 * 4 * 5 - 1)).toMatch(
      /^return_generation_logits of 60 tokens held at once are 24000 bytes; /,
    );
  });

  it('takes what changes nothing', () => {
    const inputs = {
      temperature: f32(1),
      runtime_top_k: i32(1),
      runtime_top_p: f32(0),
      runtime_min_p: f32(0),
    };
    expect(beamsOf(run([ask(1n, 9, 5, beams(3, inputs))]), 1n)).toEqual(
      beamsOf(run([ask(1n, 9, 5, beams(3))]), 1n),
    );
  });

  it('is more than the pool or the attention window hold', () => {
    const harness = new LoopHarness({ maxBeamWidth: 4, numBlocks: 9, maxAttentionWindow: 40 }).run(
      makeRequest(1n, prompt(9), 15, beams(4)),
      makeRequest(2n, prompt(9), 40, beams(2)),
    );
    expect(harness.resultOf(1n).error).toBe('');
    expect(harness.resultOf(2n).error).toMatch(
      /2 sequences of up to 49 tokens are asked for .*; past the 40 tokens/,
    );
    const small = new LoopHarness({ maxBeamWidth: 4, numBlocks: 8 }).run(
      makeRequest(1n, prompt(9), 15, beams(4)),
    );
    expect(small.resultOf(1n).error).toMatch(
      /15 new tokens in 4 sequences need 9 KV cache blocks of 8 tokens; the pool has 8/,
    );
  });
});
