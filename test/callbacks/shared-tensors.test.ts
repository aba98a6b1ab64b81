import { describe, expect, it } from 'vitest';
import { SharedTensors } from '../../callbacks/shared-tensors.js';
import { inferenceRequestOf } from '../../host/token-inputs.js';

const lists = {
  promptTokens: [1, 2, 3],
  badWords: [[4, 5], [6]],
  logitBias: new Map([[7, -1]]),
  embeddingBias: Float32Array.of(0, 1),
};

describe('SharedTensors', () => {
  it('makes the tensors of a list once for all requests that bring it', () => {
    const shared = new SharedTensors();
    const [a, b] = [1n, 2n].map((id) => inferenceRequestOf(id, { ...lists, maxNewTokens: 1, shared }).inputs);
    for (const name of ['input_ids', 'bad_words_list', 'logit_bias_tokens', 'logit_bias', 'embedding_bias']) {
      expect(a![name]!.data).toBe(b![name]!.data);
    }
    const alone = inferenceRequestOf(3n, { ...lists, maxNewTokens: 1 }).inputs;
    expect(alone.input_ids).toEqual(a!.input_ids);
    expect(alone.bad_words_list).toEqual(a!.bad_words_list);
    expect(alone.logit_bias).toEqual(a!.logit_bias);
    expect(alone.input_ids!.data).not.toBe(a!.input_ids!.data);
  });

  it('takes equal lists that are not the same for others, and nothing for itself once it is cleared', () => {
    const shared = new SharedTensors();
    const of = (promptTokens: number[]) =>
      inferenceRequestOf(1n, { promptTokens, maxNewTokens: 1, shared }).inputs.input_ids!.data;
    const list = [1, 2];
    const first = of(list);
    expect(of([1, 2])).not.toBe(first);
    expect(of(list)).toBe(first);
    shared.clear();
    list[0] = 9;
    expect([...of(list)]).toEqual([9, 2]);
  });
});
