import type { Completion } from 'openai/resources/completions';
import { describe, expect, it } from 'vitest';
import { BOS_TOKEN, bytesOf } from '../../support/toy-codec.js';
import { readChunks, readFrames, say, toyServer } from '../../support/toy-server.js';

const path = '/v1/completions';

describe('a legacy completion', () => {
  it("has OpenAI's shape and max_tokens 16 by default", async () => {
    const toy = toyServer(() => say(' world'));
    const answer = (await (await toy.post(path, { prompt: 'Hello', user: 'u' })).json()) as Completion;
    expect(answer.id).toMatch(/^cmpl-/);
    expect(answer).toMatchObject({
      object: 'text_completion',
      model: 'toy',
      choices: [{ index: 0, text: ' world', logprobs: null, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 6,
        completion_tokens: 6,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    });
    expect(toy.engine.requests[0]!.maxNewTokens).toBe(16);
    expect(Array.from(toy.engine.requests[0]!.promptTokens)).toEqual([BOS_TOKEN, ...bytesOf('Hello')]);
  });

  it('takes several prompts, texts or tokens, and n choices of each in order', async () => {
    const toy = toyServer((_, index) => say(String(index)));
    const texts = (await (await toy.post(path, { prompt: ['a', 'b'], n: 2 })).json()) as Completion;
    expect(texts.choices.map((choice) => [choice.index, choice.text])).toEqual([
      [0, '0'],
      [1, '1'],
      [2, '2'],
      [3, '3'],
    ]);
    const tokens = toyServer(() => say('x'));
    const answer = (await (await tokens.post(path, { prompt: [[1, 2], [3]] })).json()) as Completion;
    expect(tokens.engine.requests.map((request) => Array.from(request.promptTokens))).toEqual([[1, 2], [3]]);
    expect(answer.usage!.prompt_tokens).toBe(3);
    const one = toyServer(() => say('x'));
    await one.post(path, { prompt: [1, 2] });
    expect(Array.from(one.engine.requests[0]!.promptTokens)).toEqual([1, 2]);
  });

  it('echoes text and token prompts, streamed and not', async () => {
    const toy = toyServer(() => say('!'));
    for (const prompt of ['Hé', bytesOf('Hé')]) {
      const whole = (await (await toy.post(path, { prompt, echo: true })).json()) as Completion;
      expect(whole.choices[0]!.text).toBe('Hé!');
      const response = await toy.post(path, { prompt, echo: true, stream: true });
      const chunks = await readChunks<Completion>(response);
      expect(chunks.map((chunk) => chunk.choices[0]!.text).join('')).toBe('Hé!');
    }
  });

  it('gives integer logprobs in the legacy shape with offsets into the text', async () => {
    const toy = toyServer(() => [
      {
        tokens: bytesOf('ab'),
        logProbs: [-1, -2],
        top: [
          [
            [97, -1],
            [98, -3],
          ],
          [
            [98, -2],
            [97, -4],
          ],
        ],
      },
      {
        tokens: bytesOf('c'),
        logProbs: [-0.5],
        top: [
          [
            [99, -0.5],
            [97, -6],
          ],
        ],
      },
      { finish: 'length' },
    ]);
    const answer = (await (await toy.post(path, { prompt: 'x', logprobs: 2 })).json()) as Completion;
    expect(answer.choices[0]!.finish_reason).toBe('length');
    expect(answer.choices[0]!.logprobs).toEqual({
      tokens: ['a', 'b', 'c'],
      token_logprobs: [-1, -2, -0.5],
      top_logprobs: [
        { a: -1, b: -3 },
        { b: -2, a: -4 },
        { c: -0.5, a: -6 },
      ],
      text_offset: [0, 1, 2],
    });
  });

  it('streams text with one id, a finish reason and [DONE]; trap 3: usage in a chunk of its own', async () => {
    const toy = toyServer(() => say('abc'));
    const options = { include_usage: true };
    const response = await toy.post(path, { prompt: 'x', stream: true, stream_options: options });
    const { data } = await readFrames(response);
    expect(data.at(-1)).toBe('[DONE]');
    const chunks = data.slice(0, -1).map((text) => JSON.parse(text) as Completion);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
    const choices = chunks.slice(0, -1).map((chunk) => chunk.choices[0]!);
    expect(choices.map((choice) => choice.text).join('')).toBe('abc');
    expect(choices.filter((choice) => choice.finish_reason === 'stop')).toHaveLength(1);
  });

  it('with logprobs 0 gives those of its own tokens, and no others', async () => {
    const toy = toyServer(() => [{ tokens: [65], logProbs: [-0.5] }, { finish: 'stop' }]);
    const asked = { prompt: 'x', logprobs: 0 };
    const { choices } = (await (await toy.post(path, asked)).json()) as Completion;
    const logprobs = { tokens: ['A'], token_logprobs: [-0.5], top_logprobs: [{}], text_offset: [0] };
    expect(choices[0]!.logprobs).toEqual(logprobs);
  });

  it('counts text_offset in code points, as OpenAI does, behind an echoed prompt too', async () => {
    const steps = bytesOf('\u{1f9a2}\u00e9b').map((token) => ({ tokens: [token], logProbs: [-1] }));
    const toy = toyServer(() => [...steps, { finish: 'stop' }]);
    const ask = async (fields: object) => {
      const response = await toy.post(path, { prompt: '\u{1f9a2}', logprobs: 0, ...fields });
      return (await response.json()) as Completion;
    };
    const own = (await ask({})).choices[0]!;
    expect(own.text).toBe('\u{1f9a2}\u00e9b');
    // Bytes of a character begin where it does, the last one of it included.
    expect(own.logprobs!.text_offset).toEqual([0, 0, 0, 0, 1, 1, 2]);
    const echoed = (await ask({ echo: true })).choices[0]!;
    expect(echoed.logprobs!.text_offset).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]);
  });

  it('names the length of the context, and not that of the longest prompt, before it counts tokens', async () => {
    const toy = toyServer(() => say('x'));
    const response = await toy.post(path, { prompt: 'x'.repeat(100_000) });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toMatch(
      /^This model's maximum context length is 256 tokens\. However, the prompt has/,
    );
  });

  it('can give usage with every chunk', async () => {
    const toy = toyServer(() => say('abc'));
    const response = await toy.post(path, {
      prompt: 'x',
      stream: true,
      stream_options: { continuous_usage_stats: true },
    });
    const chunks = await readChunks<Completion>(response);
    expect(chunks.map((chunk) => chunk.usage!.completion_tokens)).toEqual([1, 2, 3, 3]);
  });
});
