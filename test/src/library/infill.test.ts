import { describe, expect, it } from 'vitest';
import type { TextCodec } from '../../../src/generation/text-model.js';
import { askedRequest } from '../../../src/library/asked-request.js';
import { checkGenerateOptions } from '../../../src/library/options/generate-options.js';
import { FakeEngine } from '../support/fake-engine.js';
import { BOS_TOKEN, bytesOf, toyCodec } from '../support/toy-codec.js';
import { toyModel } from '../support/toy-server.js';

const MARKERS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];
const [PREFIX, SUFFIX, MIDDLE] = [300, 301, 302];
const codec: TextCodec = {
  ...toyCodec,
  encodePiece: (text) => (MARKERS.includes(text) ? [300 + MARKERS.indexOf(text)] : bytesOf(text)),
};
const asked = (infill: object, more: object = {}, fields: object = { codec }) => {
  const options = { infill, ...more } as never;
  checkGenerateOptions('complete', options);
  return askedRequest(toyModel(new FakeEngine(() => []), fields), options);
};

describe('infill of a program', () => {
  it('has the marks of the vocabulary around what is near the gap', async () => {
    const { request, plan } = await asked({ prefix: 'ab', suffix: 'c', prompt: 'd' });
    const expected = [BOS_TOKEN, PREFIX, ...bytesOf('abd'), SUFFIX, ...bytesOf('c'), MIDDLE];
    expect([...request.promptTokens]).toEqual(expected);
    expect([request.promptParam, plan]).toEqual(['infill', null]);
    expect(request).not.toHaveProperty('infill');
  });

  it('is cut far from the gap, and leaves room for the answer', async () => {
    const extra = [{ filename: 'a.py', text: 'z'.repeat(5000) }];
    const { request } = await asked({ prefix: 'a'.repeat(5000), suffix: 'b'.repeat(5000), extra });
    expect(request.promptTokens.length).toBeLessThanOrEqual(192);
    const { request: short } = await asked({ prefix: 'a'.repeat(5000), suffix: '' }, { maxTokens: 200 });
    expect(short.promptTokens.length).toBeLessThanOrEqual(56);
  });

  it.each([
    [{ prefix: 'a' }, {}, /^infill is a plain object; it must be an object such as/],
    [{ prefix: 'a', suffix: 'b', files: [] }, {}, /^infill is/],
    [{ prefix: 'a', suffix: 'b', extra: ['x'] }, {}, /^infill is/],
    [{ prefix: 'a', suffix: 'b' }, { prompt: 'a' }, /^Give one of prompt, messages, infill/],
    [{ prefix: 'a', suffix: 'b' }, { tools: [] }, /need messages/],
  ])('refuses %j with %j', async (infill, more, words) => {
    await expect((async () => asked(infill, more))()).rejects.toThrow(words);
  });

  it('is refused by a model without such tokens', async () => {
    await expect(asked({ prefix: 'a', suffix: 'b' }, {}, {})).rejects.toThrow('This model fills no gaps');
  });
});
