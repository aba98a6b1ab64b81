import { describe, expect, it } from 'vitest';
import { JsonSize, MAX_JSON_VALUES } from '../../../../../src/server/web/bodies/json-size.js';
import { say, toyServer } from '../../../support/toy-server.js';

const sizeOf = (text: string, cut = text.length) => {
  const size = new JsonSize();
  const bytes = new TextEncoder().encode(text);
  for (let start = 0; start < bytes.length; start += cut) size.add(bytes.subarray(start, start + cut));
  return [size.depth, size.work];
};

describe('JsonSize', () => {
  it('counts levels and values, however the text is cut', () => {
    const text = '{"a":[1,2,{"b":"[[[{,\\"]]\\\\"}],"é":{}}';
    for (const cut of [1, 2, 3, 7, 100]) expect(sizeOf(text, cut)).toEqual([3, 80]);
    expect(sizeOf('5')).toEqual([0, 1]);
    expect(sizeOf(']]]][')).toEqual([0, 6]);
  });

  it('counts the length of names, however the text is cut, and not that of other texts', () => {
    const named = (length: number) => `{"a":1,"${'n'.repeat(length)}":"${'t'.repeat(5000)}"}`;
    const [, short] = sizeOf(named(10));
    for (const cut of [1, 7, 100, 10_000]) expect(sizeOf(named(1610), cut)).toEqual([1, short! + 100]);
  });
});

describe('a body', () => {
  const post = async (text: string) => {
    const toy = toyServer(() => say('ok'), {
      model: { maxInputLen: 2 ** 20, maxSeqLen: 2 ** 21, vocabSize: 6000 },
    });
    const response = await toy.post('/v1/completions', text);
    return { status: response.status, text: await response.text() };
  };

  it('of too many values is refused before it is parsed', async () => {
    const answer = await post(`{"prompt":"x","metadata":[${'1,'.repeat(MAX_JSON_VALUES)}1]}`);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(`more than ${MAX_JSON_VALUES} values`);
  });

  it('of long names is refused before it is parsed', async () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `"${'n'.repeat(500)}${i}":0`);
    const answer = await post(`{"prompt":"x","user":{${names.join(',')}}}`);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(`more than ${MAX_JSON_VALUES} values`);
  });

  it('of a long list is refused by the name of the list, but for token ids and biases', async () => {
    for (const [field, value] of [
      ['stop_token_ids', `[${'1,'.repeat(5000)}1]`],
      ['chat_template_kwargs', `{"a":{"b":[${'1,'.repeat(5000)}1]}}`],
    ]) {
      const answer = await post(`{"prompt":"x","${field}":${value}}`);
      expect(answer.status).toBe(400);
      expect(answer.text).toContain('it holds 5001 items, and no list or object may have more than 4096');
    }
    expect((await post(`{"prompt":[${'65,'.repeat(100_000)}65]}`)).status).toBe(200);
    const wrong = await post(`{"prompt":[${'65,'.repeat(100_000)}"x"]}`);
    expect(wrong.text).toContain("Invalid value for 'prompt[100000]': expected the id of a token.");
    const biases = Array.from({ length: 5000 }, (_, token) => `"${token}":1`).join(',');
    expect((await post(`{"prompt":"x","logit_bias":{${biases}}}`)).status).toBe(200);
  });
});
