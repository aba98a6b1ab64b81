import { describe, expect, it } from 'vitest';
import { retentionInputs } from '../../../callbacks/retention-inputs.js';
import { DEFAULT_SAMPLING_PARAMS } from '../../../callbacks/sampling-params.js';
import { encodeWordList } from '../../../callbacks/stop-words.js';
import type { Tensor } from '../../../callbacks/types.js';
import { validateRequest } from '../../../engine/intake/request-validation.js';
import { bool, f32, i32, makeRequest, u64 } from '../../../tools/support/loop-harness.js';

const SIZES = { vocabSize: 100, promptRowWidth: 4, turnsByGrid: false, maxSeqLen: 1000, attendsToAll: true };
const LIMITS = { ...SIZES, maxBeamWidth: 1, maxTopLogProbs: 5 };
const validate = (inputs: Record<string, Tensor>, priority?: number) =>
  validateRequest(makeRequest(1n, [1, 2, 3], 4, inputs, priority), LIMITS, () => 99n);

describe('validateRequest', () => {
  it('is greedy where nothing of sampling is given, with a drawn seed and no end_id', () => {
    const spec = validateRequest(makeRequest(1n, [1, 2, 3], 4), LIMITS, () => 99n);
    expect(spec).toMatchObject({ maxNewTokens: 4, endId: -1, padId: 0, streaming: true, priority: 0.5 });
    expect(spec.sampling).toMatchObject({ temperature: 0, topK: 0, topP: 1, seed: 99n });
    expect([...spec.promptTokens]).toEqual([1, 2, 3]);
  });

  it('reads every parameter', () => {
    const spec = validate(
      {
        temperature: f32(0.5),
        runtime_top_k: i32(10),
        runtime_top_p: f32(0.25),
        runtime_min_p: f32(0.125),
        repetition_penalty: f32(1.5),
        presence_penalty: f32(0.5),
        frequency_penalty: f32(-0.5),
        no_repeat_ngram_size: i32(3),
        min_length: i32(2),
        random_seed: u64(2n ** 64n - 1n),
        end_id: i32(7),
        stop_words_list: encodeWordList([
          [5, 7, 3],
          [9, 2],
        ]),
        return_log_probs: bool(true),
        top_log_probs: i32(5),
        beam_width: i32(1),
        time_limit_ms: i32(50),
      },
      1,
    );
    expect(spec.sampling).toEqual({
      ...DEFAULT_SAMPLING_PARAMS,
      temperature: 0.5,
      topK: 10,
      topP: 0.25,
      minP: 0.125,
      repetitionPenalty: 1.5,
      presencePenalty: 0.5,
      frequencyPenalty: -0.5,
      noRepeatNgramSize: 3,
      minLength: 2,
      seed: 2n ** 64n - 1n,
    });
    expect(spec.stopWords.map((word) => [...word])).toEqual([
      [5, 7, 3],
      [9, 2],
    ]);
    expect(spec).toMatchObject({ endId: 7, padId: 7, topLogProbs: 5, priority: 1, timeLimitMs: 50 });
  });

  it.each<[string, Record<string, Tensor>, RegExp]>([
    ['type', { temperature: i32(1) }, /temperature holds Int32Array; Float32Array/],
    ['shape', { temperature: { shape: [2], data: new Float32Array(2) } }, /temperature has the shape \[2\]/],
    ['size', { input_ids: { shape: [1, 4], data: new Int32Array(3) } }, /input_ids .* is 4 values.* has 3/],
    ['no shape', { end_id: { data: Int32Array.of(1) } as unknown as Tensor }, /end_id has no shape/],
    ['vocabulary', { input_ids: { shape: [1, 2], data: Int32Array.of(5, 100) } }, /100 at place 1.*0 to 99/],
    ['empty prompt', { input_ids: { shape: [1, 0], data: new Int32Array(0) } }, /input_ids is empty/],
    ['no new tokens', { request_output_len: i32(0) }, /request_output_len is 0; .* from 1/],
    ['NaN', { temperature: f32(Number.NaN) }, /temperature is NaN/],
    ['top-p', { runtime_top_p: f32(1.5) }, /runtime_top_p is 1.5; .* from 0 to 1/],
    ['top-k', { runtime_top_k: i32(-1) }, /runtime_top_k is -1/],
    ['end_id', { end_id: i32(100) }, /end_id is 100; .* from -1 to 99/],
    ['top log-probs', { top_log_probs: i32(6) }, /top_log_probs is 6; .* from 0 to 5/],
    ['beams', { beam_width: i32(4) }, /beam_width is 4; .* maxBeamWidth = 1/],
    [
      'unknown',
      { tempurature: f32(1) },
      /tempurature is not the name of an input tensor; did you mean temperature/,
    ],
    ['inherited name', { toString: f32(1) }, /toString is not the name/],
    [
      'offsets of stop words',
      { stop_words_list: { shape: [1, 2, 2], data: Int32Array.of(1, 2, 2, 1) } },
      /offset 1 at place 1/,
    ],
  ])('refuses a wrong %s, naming field, value and limit', (_, inputs, message) => {
    expect(() => validate(inputs)).toThrow(message);
  });

  it('reads what is to be returned; positions that must be computed are not reused', () => {
    const nothing = {
      returnContextLogits: false,
      returnGenerationLogits: false,
      returnContextLogProbs: false,
    };
    expect(validate({})).toMatchObject({ ...nothing, topContextLogProbs: 0, reusesBlocks: true });
    const context = validate({ return_context_logits: bool(true) });
    expect(context).toMatchObject({ ...nothing, returnContextLogits: true, reusesBlocks: false });
    const generation = validate({ return_generation_logits: bool(true) });
    expect(generation).toMatchObject({ ...nothing, returnGenerationLogits: true, reusesBlocks: true });
    const top = validate({ top_context_log_probs: i32(3) });
    expect(top).toMatchObject({ returnContextLogProbs: true, topContextLogProbs: 3, reusesBlocks: false });
  });

  it('reads biases of some tokens, of all, and of both together', () => {
    expect(validate({}).bias).toBeNull();
    const all = { shape: [1, 100], data: new Float32Array(100) };
    expect(validate({ embedding_bias: all }).bias).toBeNull();
    const some = {
      logit_bias_tokens: { shape: [1, 2], data: Int32Array.of(7, 99) },
      logit_bias: { shape: [1, 2], data: Float32Array.of(1.5, -Infinity) },
    };
    expect(validate(some).bias).toEqual({
      tokens: some.logit_bias_tokens.data,
      values: some.logit_bias.data,
    });
    expect(validate({ embedding_bias: all, ...some }).bias).toEqual({
      tokens: some.logit_bias_tokens.data,
      values: some.logit_bias.data,
    });
    all.data[7] = 2;
    all.data[3] = 1;
    const { tokens, values } = validate({ embedding_bias: all, ...some }).bias!;
    expect(tokens).toBeNull();
    expect([values[3], values[7], values[99], all.data[7]]).toEqual([1, 3.5, -Infinity, 2]);
  });

  it.each<[string, number[], number[], RegExp]>([
    ['another number of values', [1, 2], [1], /logit_bias has 1 values; logit_bias_tokens has 2 tokens/],
    ['a token beyond the vocabulary', [100], [1], /logit_bias_tokens holds 100 at place 0; .* 0 to 99/],
    ['a value that is no number', [1], [Number.NaN], /logit_bias holds NaN at place 0/],
  ])('refuses biases with %s', (_, tokens, values, message) => {
    const inputs = {
      logit_bias_tokens: { shape: [1, tokens.length], data: Int32Array.from(tokens) },
      logit_bias: { shape: [1, values.length], data: Float32Array.from(values) },
    };
    expect(() => validate(inputs)).toThrow(message);
  });

  it('reads how long blocks are worth keeping', () => {
    expect(validate({}).retention).toBeNull();
    const ranges = { shape: [1, 2, 4], data: Int32Array.of(0, 2, 90, 0, 2, -1, 10, 5000) };
    const decode = { shape: [1, 2], data: Int32Array.of(5, 0) };
    const { retention } = validate({ retention_ranges: ranges, decode_retention: decode });
    expect(retention).toEqual({
      ranges: [
        { start: 0, end: 2, priority: 90 },
        { start: 2, priority: 10, durationMs: 5000 },
      ],
      generated: { priority: 5 },
    });
    expect(retentionInputs(retention!)).toEqual({ retention_ranges: ranges, decode_retention: decode });
    expect(validate({ cache_salt: u64(7n) }).cacheSalt).toBe(7n);
  });

  it.each(['input_ids', 'request_output_len'])('refuses a request without %s', (name) => {
    const request = makeRequest(1n, [1], 1);
    delete request.inputs[name];
    expect(() => validateRequest(request, LIMITS, () => 0n)).toThrow(`${name} is missing`);
  });

  it('refuses a priority outside 0..1 and inputs that are none', () => {
    expect(() => validate({}, 1.5)).toThrow(/priority is 1.5/);
    const broken = { requestId: 1n, inputs: undefined as unknown as Record<string, Tensor> };
    expect(() => validateRequest(broken, LIMITS, () => 0n)).toThrow(/inputs is missing/);
  });
});
