import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../../callbacks/token-request.js';
import type { Step } from '../../support/fake-engine.js';
import { bytesOf, toyCodec } from '../../support/toy-codec.js';
import { readChunks, readFrames, say, toyServer } from '../../support/toy-server.js';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Hi' }];
const textOf = (chunks: ChatCompletionChunk[], index = 0) =>
  chunks
    .flatMap((chunk) => chunk.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? '')
    .join('');
const promptText = (tokens: Iterable<number>) => {
  const detokenizer = toyCodec.createDetokenizer({ skipSpecialTokens: true });
  return detokenizer.push(tokens) + detokenizer.flush();
};

describe('a whole chat answer', () => {
  it("goes on from a refusal, a part of an assistant's message", async () => {
    const toy = toyServer(() => say('Hello'));
    const refusal = { role: 'assistant', content: [{ type: 'refusal', refusal: 'I will not.' }] };
    const text = { role: 'assistant', content: [{ type: 'text', text: 'I will not.' }] };
    for (const said of [refusal, text]) {
      expect((await toy.post(path, { messages: [...messages, said, ...messages] })).status).toBe(200);
    }
    const [first, second] = toy.engine.requests.map(({ promptTokens }) => promptText(promptTokens));
    expect(first).toBe(second);
    expect(first).toContain('I will not.');
    const ofUser = [{ role: 'user', content: refusal.content }];
    const answer = await toy.post(path, { messages: ofUser });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("'messages[0].content[0]' is not supported");
  });

  it("has OpenAI's shape", async () => {
    const toy = toyServer(() => say('Hello'));
    const response = await toy.post(path, { model: 'toy', messages, temperature: 0 });
    expect(response.status).toBe(200);
    const answer = (await response.json()) as ChatCompletion;
    expect(answer.id).toMatch(/^chatcmpl-/);
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: 'toy',
      system_fingerprint: 'fp_toy',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
    });
    const promptTokens = toy.engine.requests[0]!.promptTokens.length;
    expect(answer.usage).toEqual({
      prompt_tokens: promptTokens,
      completion_tokens: 5,
      total_tokens: promptTokens + 5,
      prompt_tokens_details: { cached_tokens: 0 },
    });
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(60);
  });

  it('carries the fingerprints of the engines elsewhere that answered', async () => {
    const withEngines = (index: number): Step[] => [
      { engines: [`fp_${index}`] },
      { tokens: bytesOf('a') },
      ...(index < 2 ? [] : [{ engines: ['fp_2', 'fp_9'] }]),
      { tokens: bytesOf('b') },
      { finish: 'stop' },
    ];
    const toy = toyServer((_, index) => withEngines(index));
    const fingerprintOf = async (fields: object) => {
      const answer = await toy.post('/v1/completions', { prompt: 'x', ...fields });
      return ((await answer.json()) as ChatCompletion).system_fingerprint;
    };
    expect(await fingerprintOf({ prompt: ['x', 'y'] })).toBe('fp_0+fp_1');
    expect(await fingerprintOf({})).toBe('fp_2+fp_9');
    const streamed = await toy.post(path, { messages, stream: true });
    const chunks = await readChunks<ChatCompletionChunk>(streamed);
    const seen = [...new Set(chunks.map((chunk) => chunk.system_fingerprint))];
    expect(seen).toEqual(['fp_3', 'fp_3+fp_2+fp_9']);
  });

  it('hands every sampling field to the engine', async () => {
    const toy = toyServer(() => say('x'));
    await toy.post(path, {
      messages,
      max_completion_tokens: 9,
      min_tokens: 2,
      temperature: 0.5,
      top_p: 0.75,
      top_k: 7,
      min_p: 0.25,
      repetition_penalty: 1.5,
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      no_repeat_ngram_size: 3,
      logit_bias: { 65: -100, 66: 1.5 },
      bad_words: ['ab', ' c', 'ab'],
      seed: 42,
      stop_token_ids: [65, 66],
      priority: 1,
    });
    expect(toy.engine.requests[0]).toMatchObject({
      maxNewTokens: 9,
      minLength: 2,
      temperature: 0.5,
      topP: 0.75,
      topK: 7,
      minP: 0.25,
      repetitionPenalty: 1.5,
      presencePenalty: 0.5,
      frequencyPenalty: -0.5,
      noRepeatNgramSize: 3,
      logitBias: new Map([
        [65, -100],
        [66, 1.5],
      ]),
      badWords: [
        [97, 98],
        [32, 97, 98],
        [32, 99],
      ],
      seed: 42n,
      stopWords: [[65], [66]],
      endTokenIds: [256],
      priority: 1,
    });
  });

  it('takes top_k -1 as off and ignore_eos as no end tokens', async () => {
    const toy = toyServer(() => say('x'));
    await toy.post(path, { messages, top_k: -1, ignore_eos: true });
    expect(toy.engine.requests[0]).toMatchObject({ topK: 0, endTokenIds: [] });
  });

  it('caps an absent max_tokens at the context that is left and at the default', async () => {
    const short = toyServer(() => say('x'));
    await short.post(path, { messages });
    expect(short.engine.requests[0]!.maxNewTokens).toBe(64);
    const long = toyServer(() => say('x'), { model: { maxSeqLen: 50 } });
    await long.post(path, { messages });
    const request = long.engine.requests[0]!;
    expect(request.maxNewTokens).toBe(50 - request.promptTokens.length);
  });

  it('ends at a stop string, without it, or with it where asked', async () => {
    for (const [include, expected] of [
      [false, 'one '],
      [true, 'one END'],
    ] as const) {
      const toy = toyServer(() => say('one END two'));
      const body = { messages, stop: ['END'], include_stop_str_in_output: include };
      const answer = (await (await toy.post(path, body)).json()) as ChatCompletion;
      expect(answer.choices[0]!.message.content).toBe(expected);
      expect(answer.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: 'END' });
      expect(answer.usage!.completion_tokens).toBe('one END'.length);
      expect(toy.engine.cancelled).toBe(1);
    }
  });

  it('ends at a stop token, which is not part of the text', async () => {
    const script = () => [{ tokens: bytesOf('hi!') }, { finish: 'stop' as const }];
    const toy = toyServer(script);
    const stop_token_ids = bytesOf('!');
    const answer = (await (await toy.post(path, { messages, stop_token_ids })).json()) as ChatCompletion;
    expect(answer.choices[0]).toMatchObject({ message: { content: 'hi' }, stop_reason: stop_token_ids[0] });
    const early = toyServer(() => [{ tokens: bytesOf('a!b!') }, { finish: 'stop' as const }]);
    const later = (await (await early.post(path, { messages, stop_token_ids })).json()) as ChatCompletion;
    expect(later.choices[0]!.message.content).toBe('a!b');
  });

  it('trap 13: n choices draw with numbers of their own, the same each time', async () => {
    const drawn: unknown[] = [];
    for (let run = 0; run < 2; run++) {
      const toy = toyServer((_, index) => say(`answer ${index}`));
      const response = await toy.post(path, { messages, n: 3, seed: 5 });
      const answer = (await response.json()) as ChatCompletion;
      expect(answer.choices.map((choice) => choice.message.content)).toEqual([
        'answer 0',
        'answer 1',
        'answer 2',
      ]);
      expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
      expect(answer.usage!.completion_tokens).toBe(24);
      drawn.push(toy.engine.requests.map(({ seed, firstSequenceIndex }) => [seed, firstSequenceIndex ?? 0]));
    }
    const expected = [
      [5n, 0],
      [5n, 1],
      [5n, 2],
    ];
    expect(drawn).toEqual([expected, expected]);
  });

  it('trap 12: takes assistant messages with content null and tool_calls', async () => {
    const toy = toyServer(() => say('ok'));
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const response = await toy.post(path, {
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'sun' },
      ],
    });
    expect(response.status).toBe(200);
  });

  it('joins text parts and takes developer for system', async () => {
    const toy = toyServer(() => say('ok'));
    await toy.post(path, {
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    });
    expect(promptText(toy.engine.requests[0]!.promptTokens)).toBe(
      '<system>Be brief.</><user>a\nb</><assistant>',
    );
  });

  it('continues the final message where asked', async () => {
    const toy = toyServer(() => say('ok'));
    const conversation = [...messages, { role: 'assistant', content: 'Once' }];
    await toy.post(path, { messages: conversation, continue_final_message: true });
    expect(promptText(toy.engine.requests[0]!.promptTokens)).toBe('<user>Hi</><assistant>Once');
    const both = { messages: conversation, continue_final_message: true, add_generation_prompt: true };
    expect((await toy.post(path, both)).status).toBe(400);
  });
});

describe('log-probs of chat', () => {
  const script = (): Step[] => [
    {
      tokens: bytesOf('A'),
      logProbs: [-0.5],
      top: [
        [
          [65, -0.5],
          [66, -1.5],
        ],
      ],
    },
    {
      tokens: bytesOf('é'),
      logProbs: [-0.25, Number.NEGATIVE_INFINITY],
      top: [
        [
          [195, -0.25],
          [1, -3],
        ],
        [
          [169, -9],
          [2, -10],
        ],
      ],
    },
    { finish: 'stop' },
  ];

  it('trap 2: bytes are raw, and a part of a character has its own spelling', async () => {
    const toy = toyServer(script);
    const response = await toy.post(path, { messages, logprobs: true, top_logprobs: 2 });
    const answer = (await response.json()) as ChatCompletion;
    const content = answer.choices[0]!.logprobs!.content!;
    expect(content.map((entry) => entry.bytes)).toEqual([[65], [195], [169]]);
    expect(content.map((entry) => entry.token)).toEqual(['A', 'bytes:\\xc3', 'bytes:\\xa9']);
    expect(content[0]!.top_logprobs.map((entry) => [entry.token, entry.logprob])).toEqual([
      ['A', -0.5],
      ['B', -1.5],
    ]);
    // Trap 10: JSON has no -Infinity.
    expect(content[2]!.logprob).toBe(-9999);
  });

  it('trap 10: logprobs without top_logprobs is valid', async () => {
    const toy = toyServer(() => [{ tokens: [65], logProbs: [-0.5] }, { finish: 'stop' }]);
    const response = await toy.post(path, { messages, logprobs: true });
    const answer = (await response.json()) as ChatCompletion;
    expect(answer.choices[0]!.logprobs!.content).toEqual([
      { token: 'A', logprob: -0.5, bytes: [65], top_logprobs: [] },
    ]);
    expect(toy.engine.requests[0]).toMatchObject({ returnLogProbs: true, topLogProbs: 0 });
  });

  it('leave with the text of their tokens, and not at all where a stop string cuts it off', async () => {
    const steps = (): Step[] => [
      ...bytesOf('abENDc').map((token) => ({ tokens: [token], logProbs: [-1] })),
      { finish: 'stop' },
    ];
    const toy = toyServer(steps);
    const response = await toy.post(path, { messages, logprobs: true, stop: 'END', stream: true });
    const chunks = await readChunks<ChatCompletionChunk>(response);
    const tokens = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    expect(tokens.map((entry) => entry.token).join('')).toBe('ab');
    expect(textOf(chunks)).toBe('ab');
  });
});

describe('a streamed chat answer', () => {
  it('trap 4: one id, the role once in the first delta, the finish reason in a last chunk with an empty delta', async () => {
    const toy = toyServer(() => say('Hello'));
    const response = await toy.post(path, { messages, stream: true });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const { data } = await readFrames(response);
    expect(data.at(-1)).toBe('[DONE]');
    const chunks = data.slice(0, -1).map((text) => JSON.parse(text) as ChatCompletionChunk);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.filter((chunk) => chunk.choices[0]!.delta.role !== undefined)).toHaveLength(1);
    expect(chunks.at(-1)!.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
    expect(chunks.slice(0, -1).every((chunk) => chunk.choices[0]!.finish_reason === null)).toBe(true);
    expect(textOf(chunks)).toBe('Hello');
  });

  it('trap 3: usage is a chunk of its own with choices [], only where asked', async () => {
    const toy = toyServer(() => say('abc'));
    const response = await toy.post(path, {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await readChunks<ChatCompletionChunk>(response);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
    expect(chunks.slice(0, -1).every((chunk) => chunk.choices.length === 1 && chunk.usage === null)).toBe(
      true,
    );
    const without = await readChunks<ChatCompletionChunk>(await toy.post(path, { messages, stream: true }));
    expect(without.every((chunk) => chunk.choices.length === 1 && !('usage' in chunk))).toBe(true);
  });

  it('trap 1: a stop string split over tokens never shows its beginning', async () => {
    const toy = toyServer(() => say('one\n\nUse two\n\nUser: three'));
    const response = await toy.post(path, { messages, stream: true, stop: '\n\nUser:' });
    const chunks = await readChunks<ChatCompletionChunk>(response);
    expect(textOf(chunks)).toBe('one\n\nUse two');
    const unfinished = toyServer(() => say('almost\n\nUse'));
    const flushed = await unfinished.post(path, { messages, stream: true, stop: '\n\nUser:' });
    expect(textOf(await readChunks(flushed))).toBe('almost\n\nUse');
  });

  it('trap 2: a character split over tokens is never half', async () => {
    const text = 'naïve 🦢 日本';
    const toy = toyServer(() => say(text));
    const chunks = await readChunks<ChatCompletionChunk>(await toy.post(path, { messages, stream: true }));
    expect(textOf(chunks)).toBe(text);
    const deltas = chunks.map((chunk) => chunk.choices[0]!.delta.content ?? '');
    expect(deltas.some((delta) => delta.includes('\ufffd'))).toBe(false);
  });

  it('trap 6: an error after the beginning is a frame, and the stream ends there', async () => {
    const toy = toyServer(() => [
      { tokens: [65] },
      { waitMs: 1 },
      { error: new RequestError('logits are NaN') },
    ]);
    const response = await toy.post(path, { messages, stream: true });
    expect(response.status).toBe(200);
    const { data } = await readFrames(response);
    expect(JSON.parse(data.at(-1)!)).toEqual({
      error: { message: 'logits are NaN', type: 'server_error', param: null, code: 'engine_error' },
    });
  });

  it('an error before the first token is a status', async () => {
    const toy = toyServer(() => [{ waitMs: 1 }, { error: new RequestError('no room') }]);
    const response = await toy.post(path, { messages, stream: true });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { message: 'no room' } });
  });

  it('trap 8: keeps a silent stream alive with comments', async () => {
    const toy = toyServer(() => [{ waitMs: 120 }, ...say('late')], { eventStream: { keepAliveMs: 10 } });
    const { data, comments } = await readFrames(await toy.post(path, { messages, stream: true }));
    expect(comments).toContain('keep-alive');
    expect(data.at(-1)).toBe('[DONE]');
  });

  it('interleaves n choices, each with one role and one finish reason', async () => {
    const toy = toyServer((_, index) => say(`text ${index}`));
    const response = await toy.post(path, { messages, stream: true, n: 2 });
    const chunks = await readChunks<ChatCompletionChunk>(response);
    for (const index of [0, 1]) {
      const mine = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
      expect(textOf(chunks, index)).toBe(`text ${index}`);
      expect(mine.filter((choice) => choice.delta.role !== undefined)).toHaveLength(1);
      expect(mine.filter((choice) => choice.finish_reason !== null)).toHaveLength(1);
    }
  });
});
