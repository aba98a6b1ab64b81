import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import type { TextCodec } from '../../../../src/generation/text-model.js';
import type { Step } from '../../support/fake-engine.js';
import { BOS_TOKEN, bytesOf, toyCodec } from '../../support/toy-codec.js';
import { readChunks, say, type ToyOptions, toyServer } from '../../support/toy-server.js';

interface Choice {
  index: number;
  text: string;
  logprobs: {
    tokens: string[];
    token_logprobs: (number | null)[];
    top_logprobs: (Record<string, number> | null)[];
    text_offset: number[];
  } | null;
  finish_reason: string | null;
  token_ids?: number[];
  prompt_token_ids?: number[];
  prompt_logprobs?: unknown[];
  seed?: number;
}
interface Answer {
  choices: Choice[];
  usage: { completion_tokens: number };
  prompt_token_ids?: number[];
  prompt_logprobs?: unknown[];
  error?: { param: string; message: string; code: string };
}

/** A model that says 'xy' and knows log-probs of a prompt of three tokens. */
function server(options: ToyOptions = {}, endsEarly = false) {
  const seen: TokenRequest[] = [];
  const context = [
    { logProb: Number.NEGATIVE_INFINITY, top: [[65, -0.5] as const] },
    { logProb: -2, top: [[98, -2] as const] },
  ];
  const steps: Step[] = [
    { tokens: [120], logProbs: [-1], top: [[[120, -1]]], context },
    { tokens: [121], logProbs: [-3], top: [[[120, -0.5]]] },
    { finish: 'length' },
  ];
  const toy = toyServer((request) => {
    seen.push(request);
    return endsEarly ? [{ tokens: [120], context }, { finish: 'stop' }] : steps;
  }, options);
  const ask = async (fields: object, path = '/v1/completions') => {
    const response = await toy.post(path, fields);
    return (await response.json()) as Answer;
  };
  return { toy, seen, ask };
}

describe('echo with logprobs', () => {
  const expected = {
    tokens: ['<257>', 'a', 'b', 'x', 'y'],
    token_logprobs: [null, -9999, -2, -1, -3],
    top_logprobs: [null, { A: -0.5 }, { b: -2 }, { x: -1 }, { x: -0.5 }],
    text_offset: [0, 0, 1, 2, 3],
  };

  it('trap 10: has null for the first token, and -Infinity clamped', async () => {
    const { ask, seen } = server();
    const answer = await ask({ prompt: 'ab', echo: true, logprobs: 1 });
    expect(answer.choices[0]).toMatchObject({ text: 'abxy', logprobs: expected });
    expect(seen[0]).toMatchObject({ returnContextLogProbs: true, topContextLogProbs: 1 });
  });

  it('is the same in a stream', async () => {
    const response = await server().toy.post('/v1/completions', {
      prompt: 'ab',
      echo: true,
      logprobs: 1,
      stream: true,
    });
    const choices = (await readChunks<Answer>(response)).flatMap((chunk) => chunk.choices);
    expect(choices.map(({ text }) => text).join('')).toBe('abxy');
    for (const key of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'] as const) {
      const found = choices.map(({ logprobs }) => (logprobs?.[key] ?? []) as unknown[]);
      expect(found.flat()).toEqual(expected[key]);
    }
  });

  it('needs no answer: max_tokens 0 scores the prompt alone', async () => {
    for (const endsEarly of [false, true]) {
      const { ask, seen } = server({}, endsEarly);
      const answer = await ask({ prompt: 'ab', echo: true, logprobs: 1, max_tokens: 0 });
      expect(answer.choices[0]).toMatchObject({ text: 'ab', finish_reason: 'length' });
      expect(answer.choices[0]!.logprobs!.tokens).toEqual(['<257>', 'a', 'b']);
      expect(answer.usage.completion_tokens).toBe(0);
      expect(seen[0]!.maxNewTokens).toBe(1);
    }
    expect((await server().ask({ prompt: 'ab', max_tokens: 0 })).error!.param).toBe('max_tokens');
  });
});

describe('prompt_logprobs', () => {
  const expected = [
    null,
    {
      65: { logprob: -0.5, rank: 1, decoded_token: 'A' },
      97: { logprob: -9999, rank: null, decoded_token: 'a' },
    },
    { 98: { logprob: -2, rank: 1, decoded_token: 'b' } },
  ];

  it("have vLLM's shape: of each prompt in completions, of the one in chat", async () => {
    const { ask } = server();
    const answer = await ask({ prompt: ['ab', 'ab'], prompt_logprobs: 1 });
    expect(answer.choices.map((choice) => choice.prompt_logprobs)).toEqual([expected, expected]);
    const toy = server({ model: { codec: { ...toyCodec, encodeChat: () => [BOS_TOKEN, 97, 98] } } });
    const chat = await toy.ask(
      { messages: [{ role: 'user', content: 'x' }], prompt_logprobs: 1 },
      '/v1/chat/completions',
    );
    expect(chat.prompt_logprobs).toEqual(expected);
  });

  it('are refused with a stream, and beyond what the server gives', async () => {
    const { ask } = server();
    for (const fields of [
      { prompt_logprobs: 1, stream: true },
      { prompt_logprobs: 21 },
      { prompt_logprobs: -1 },
    ]) {
      expect((await ask({ prompt: 'ab', ...fields })).error!.param).toBe('prompt_logprobs');
    }
  });
});

describe('top log-probs', () => {
  const chat = { messages: [{ role: 'user', content: 'x' }], logprobs: true };

  it('are as many as the server allows', async () => {
    const { ask, seen } = server({ model: { maxLogProbs: 30 } });
    expect((await ask({ prompt: 'ab', logprobs: 30 })).error).toBeUndefined();
    expect(seen[0]!.topLogProbs).toBe(30);
    const refused = (await ask({ prompt: 'ab', logprobs: 31 })).error!;
    expect(refused).toMatchObject({ param: 'logprobs', message: expect.stringContaining('at most 30') });
    expect((await ask({ ...chat, top_logprobs: 31 }, '/v1/chat/completions')).error!.param).toBe(
      'top_logprobs',
    );
  });

  it('trap 10: logprobs without top_logprobs is valid', async () => {
    const { ask, seen } = server();
    expect((await ask(chat, '/v1/chat/completions')).error).toBeUndefined();
    expect(seen[0]).toMatchObject({ returnLogProbs: true, topLogProbs: 0 });
  });

  it('are all with -1, where the server gives all', async () => {
    const { ask, seen } = server({ model: { maxLogProbs: 258 } });
    await ask({ prompt: 'ab', logprobs: -1 });
    expect(seen[0]!.topLogProbs).toBe(258);
  });
});

describe('return_token_ids', () => {
  const fields = { prompt: 'ab', return_token_ids: true };
  const prompt = [BOS_TOKEN, ...bytesOf('ab')];

  it('gives the tokens of prompt and answer', async () => {
    const [choice] = (await server().ask(fields)).choices;
    expect(choice).toMatchObject({ prompt_token_ids: prompt, token_ids: [120, 121] });
    const chat = await server().ask(
      { messages: [{ role: 'user', content: 'ab' }], return_token_ids: true },
      '/v1/chat/completions',
    );
    expect(chat.prompt_token_ids).toContain(BOS_TOKEN);
    expect(chat.choices[0]!.token_ids).toEqual([120, 121]);
  });

  it('gives them in streams: those of the prompt once', async () => {
    const response = await server().toy.post('/v1/completions', { ...fields, stream: true });
    const choices = (await readChunks<Answer>(response)).flatMap((chunk) => chunk.choices);
    expect(choices.flatMap(({ token_ids }) => token_ids ?? [])).toEqual([120, 121]);
    expect(choices.flatMap(({ prompt_token_ids }) => prompt_token_ids ?? [])).toEqual(prompt);
    const chat = await server().toy.post('/v1/chat/completions', {
      ...{ messages: [{ role: 'user', content: 'ab' }], return_token_ids: true, stream: true, n: 2 },
    });
    const chunks = await readChunks<Answer>(chat);
    expect(chunks.filter((chunk) => chunk.prompt_token_ids !== undefined)).toHaveLength(1);
    expect(chunks[0]!.prompt_token_ids).toContain(BOS_TOKEN);
    for (const index of [0, 1]) {
      const own = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
      expect(own.flatMap(({ token_ids }) => token_ids ?? [])).toEqual([120, 121]);
    }
  });
});

describe('the seed', () => {
  it('is told: the one that was given, or the one that was drawn, which a number holds', async () => {
    const { ask, seen } = server();
    expect((await ask({ prompt: 'ab', seed: 7 })).choices[0]!.seed).toBe(7);
    const [first, second] = (await ask({ prompt: ['ab', 'ab'] })).choices;
    expect(first!.seed).not.toBe(second!.seed);
    expect(Number.isSafeInteger(first!.seed)).toBe(true);
    expect(seen[1]!.seed).toBe(BigInt(first!.seed!));
    const response = await server().toy.post('/v1/chat/completions', {
      ...{ messages: [{ role: 'user', content: 'ab' }], seed: 9, stream: true },
    });
    expect((await readChunks<Answer>(response)).at(-1)!.choices[0]!.seed).toBe(9);
  });
});

describe('suffix', () => {
  const MARKERS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];
  /** Tokens 300, 301 and 302 are the markers. */
  const codec: TextCodec = {
    ...toyCodec,
    encodePiece: (text) => (MARKERS.includes(text) ? [300 + MARKERS.indexOf(text)] : bytesOf(text)),
  };

  it('is put behind the prompt in the form of the model', async () => {
    const { ask, seen } = server({ model: { codec, vocabSize: 400 } });
    await ask({ prompt: 'a', suffix: 'b' });
    expect(Array.from(seen[0]!.promptTokens)).toEqual([BOS_TOKEN, 300, 97, 301, 98, 302]);
    await ask({ prompt: [97], suffix: 'b' });
    expect(Array.from(seen[1]!.promptTokens)).toEqual([300, 97, 301, 98, 302]);
    expect((await ask({ prompt: 'a', suffix: 'b', echo: true, logprobs: 0 })).error!.param).toBe('suffix');
  });

  it('is refused by name where the model has no tokens for it', async () => {
    const { error } = await server().ask({ prompt: 'a', suffix: 'b' });
    expect(error).toMatchObject({ param: 'suffix', code: 'unsupported_parameter' });
    expect((await server().ask({ prompt: 'a', suffix: '' })).error).toBeUndefined();
  });
});

describe('continuous_usage_stats', () => {
  it('has the usage so far in every chunk', async () => {
    const toy = toyServer(() => say('abc'));
    const response = await toy.post('/v1/completions', {
      ...{ prompt: 'p', stream: true, stream_options: { continuous_usage_stats: true } },
    });
    const chunks = await readChunks<Answer>(response);
    expect(chunks.map(({ usage }) => usage.completion_tokens)).toEqual([1, 2, 3, 3]);
  });

  it.each(['/v1/completions', '/v1/chat/completions'])(
    'gives way to include_usage false: %s',
    async (path) => {
      const toy = toyServer(() => say('abc'));
      const options = { include_usage: false, continuous_usage_stats: true };
      const asked = { prompt: 'p', messages: [{ role: 'user', content: 'p' }] };
      const { prompt, messages } = asked;
      const body = { ...(path.includes('chat') ? { messages } : { prompt }), stream: true };
      const chunks = await readChunks<Answer>(await toy.post(path, { ...body, stream_options: options }));
      expect(chunks.filter((chunk) => 'usage' in chunk)).toEqual([]);
    },
  );
});
