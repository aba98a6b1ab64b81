import { describe, expect, it } from 'vitest';
import type { InferenceRequest, Tensor } from '../../../callbacks/types.js';
import { validateRequest } from '../../../engine/intake/request-validation.js';

const limits = {
  vocabSize: 100,
  promptRowWidth: 4,
  turnsByGrid: false,
  maxSeqLen: 64,
  attendsToAll: true,
  maxBeamWidth: 1,
  maxTopLogProbs: 5,
};
const i32 = (...values: number[]): Tensor => ({ shape: [1, values.length], data: Int32Array.from(values) });
const bool = (value: number): Tensor => ({ shape: [1], data: Uint8Array.of(value) });

function read(inputs: Record<string, Tensor>, fields: object = {}) {
  const request = {
    requestId: 1n,
    inputs: { input_ids: i32(5, 6, 7, 8), request_output_len: i32(3), ...inputs },
    ...fields,
  } as InferenceRequest;
  return validateRequest(request, limits, () => 0n);
}

describe('the forms of TensorRT-LLM that are not the names of the contract', () => {
  it('are input_lengths, which says where the prompt ends', () => {
    expect(read({ input_lengths: i32(2) }).promptTokens).toEqual(Int32Array.of(5, 6));
    expect(read({ input_lengths: i32(4) }).promptTokens).toHaveLength(4);
    for (const length of [0, 5, -1]) {
      expect(() => read({ input_lengths: i32(length) })).toThrow(
        `input_lengths is ${length}; input_ids has 4 tokens, so it must be from 1 to 4.`,
      );
    }
  });

  it('are noRepeatNgramSize, which is no_repeat_ngram_size', () => {
    expect(read({ noRepeatNgramSize: i32(3) }).sampling.noRepeatNgramSize).toBe(3);
    expect(read({ noRepeatNgramSize: i32(3), no_repeat_ngram_size: i32(3) }).sampling.noRepeatNgramSize).toBe(
      3,
    );
    expect(() => read({ noRepeatNgramSize: i32(3), no_repeat_ngram_size: i32(2) })).toThrow(
      'the same setting',
    );
    expect(() => read({ noRepeatNgramSize: i32(-2) })).toThrow('no_repeat_ngram_size');
  });

  it('are isStreaming, which is the tensor streaming', () => {
    expect(read({}).streaming).toBe(false);
    expect(read({}, { isStreaming: true }).streaming).toBe(true);
    expect(read({ streaming: bool(1) }, { isStreaming: true }).streaming).toBe(true);
    expect(read({ streaming: bool(1) }, { isStreaming: undefined }).streaming).toBe(true);
    expect(() => read({ streaming: bool(1) }, { isStreaming: false })).toThrow('one of them is enough');
    expect(() => read({}, { isStreaming: 1 })).toThrow('isStreaming is 1; true or false is expected.');
  });
});

it('refuses fields that a request does not have', () => {
  expect(() => read({}, { priorty: 1 })).toThrow(
    'priorty is not a field of a request; did you mean priority?',
  );
  expect(() => read({}, { max_tokens: 1 })).toThrow('tensors belong into inputs.');
});
