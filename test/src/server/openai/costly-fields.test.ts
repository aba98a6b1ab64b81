import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import type { StopAutomaton } from '../../../../models/tokenizer/stop-automaton.js';
import { StopStrings } from '../../../../models/tokenizer/stop-strings.js';
import type { TextCodec } from '../../../../src/generation/text-model.js';
import { bytesOf, toyCodec } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';

/** Every automaton that a text was followed with. */
const used = new Set<StopAutomaton>();
const { get: real } = Object.getOwnPropertyDescriptor(StopStrings.prototype, 'automaton')!;
beforeEach(() => {
  used.clear();
  vi.spyOn(StopStrings.prototype, 'automaton', 'get').mockImplementation(function (this: StopStrings) {
    const automaton: StopAutomaton = real!.call(this);
    used.add(automaton);
    return automaton;
  });
});
afterEach(() => vi.restoreAllMocks());

/** A server with what it was asked to encode and to generate. */
function server(options: ToyOptions = {}) {
  const jobs: string[][] = [];
  const asked: TokenRequest[] = [];
  const codec: TextCodec = {
    ...toyCodec,
    encodeText: () => {
      throw new Error('A text was encoded by itself.');
    },
    encodePiece: () => {
      throw new Error('A text was encoded by itself.');
    },
    encodeTexts: async (texts) => {
      jobs.push([...texts]);
      return texts.map(bytesOf);
    },
  };
  const toy = toyServer(
    (request) => {
      asked.push(request);
      return say('ok');
    },
    { ...options, model: { maxInputLen: 4096, maxSeqLen: 8192, vocabSize: 300, codec, ...options.model } },
  );
  const ask = async (fields: object, path = '/v1/completions') => {
    const response = await toy.post(path, fields);
    const body = (await response.json()) as { error?: { message: string; param: string } };
    return { status: response.status, message: body.error?.message ?? '', param: body.error?.param ?? '' };
  };
  return { ask, jobs, asked };
}

const texts = (count: number, length: number) =>
  Array.from({ length: count }, (_, i) => String(i).padStart(length, 'x'));

describe('the most stop texts that a request may have', () => {
  const stop = texts(64, 256);
  it('are one automaton for all answers to all prompts', async () => {
    const { status } = await server().ask({ prompt: texts(8, 4), n: 128, stop, max_tokens: 2 });
    expect(status).toBe(200);
    expect(used.size).toBe(1);
  });

  it.each([
    ['a longer one', { stop: 'x'.repeat(4097) }, /'stop': it is 4097 characters long, at most 4096/],
    ['one of many', { stop: ['a', 'x'.repeat(4097)] }, /'stop\[1\]': it is 4097 characters long/],
    [
      'more together',
      { stop: texts(5, 4096) },
      /the stop texts have 20480 characters together, at most 16384/,
    ],
    ['more of them', { stop: texts(65, 2) }, /'stop': expected a string or up to 64 strings/],
  ])('are not exceeded by %s', async (_, fields, message) => {
    const answer = await server().ask({ prompt: 'x', ...fields });
    expect([answer.status, answer.message]).toEqual([400, expect.stringMatching(message)]);
    expect(used.size).toBe(0);
  });
});

describe('the most bad words that a request may have', () => {
  it('are encoded as one piece of work, each once', async () => {
    const { ask, jobs, asked } = server();
    const words = texts(1024, 32);
    expect((await ask({ prompt: [1], n: 2, bad_words: [...words.slice(1), words[1]] })).status).toBe(200);
    expect(jobs).toHaveLength(1);
    expect(jobs[0]).toHaveLength(2 * 1023);
    expect(asked[0]!.badWords).toHaveLength(2 * 1023);
    for (const request of asked) expect(request.badWords).toBe(asked[0]!.badWords);
  });

  it.each([
    [{ bad_words: ['x'.repeat(513)] }, /'bad_words': it is 513 characters long, at most 512/],
    [{ bad_words: texts(1024, 33) }, /the bad words have 33792 characters together, at most 32768/],
    [{ bad_words: texts(1025, 2) }, /'bad_words': expected at most 1024/],
  ])('are not exceeded by more', async (fields, message) => {
    const { ask, jobs } = server();
    const answer = await ask({ prompt: 'x', ...fields });
    expect([answer.status, answer.message]).toEqual([400, expect.stringMatching(message)]);
    expect(jobs).toEqual([]);
  });
});

describe('prompts', () => {
  it('are encoded as one piece of work, as many as they are', async () => {
    const { ask, jobs } = server({ queue: 256 } as ToyOptions);
    expect((await ask({ prompt: texts(256, 100), max_tokens: 1 })).status).toBe(200);
    expect(jobs).toHaveLength(1);
  });

  it.each([
    [{ prompt: texts(257, 1) }, "'prompt': it holds 257 prompts, at most 256 are taken"],
    [
      { prompt: texts(4097, 1) },
      "'prompt': it holds 4097 items, and no list or object may have more than 4096",
    ],
    [{ prompt: texts(9, 1), n: 128 }, "'n' is 128 for each of 9 prompts, which makes 1152 answers"],
    [{ prompt: texts(9, 1), best_of: 128 }, "'best_of' is 128 for each of 9 prompts"],
    [{ prompt: [[1], [2, -1]] }, "'prompt[1][1]': expected the id of a token"],
    [{ prompt: ['a', 5] }, "'prompt[1]': expected a string"],
    [{ prompt: [[]] }, "'prompt[0]': expected a list that is not empty"],
  ])('are refused in words that say why: %#', async (fields, message) => {
    const answer = await server().ask(fields);
    expect(answer.status).toBe(400);
    expect(answer.message).toContain(message);
  });
});

describe('biases', () => {
  const biases = (count: number, key: (i: number) => string = String) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [key(i), 1]));
  it.each([
    [biases(301), "'logit_bias' has 301 biases, but the vocabulary has 300 tokens"],
    [biases(16_385), "'logit_bias': it holds 16385 biases, at most 16384 are taken"],
    [biases(1025, (i) => `x${i}`), "'logit_bias': at most 1024 texts are taken"],
    [biases(2, (i) => 'x'.repeat(257 + i)), 'a text has at most 256 characters'],
    [{ 1: 0, 7: 'a' }, "'logit_bias.7': expected a number"],
    [{ 1: 101 }, "'logit_bias.1': expected a number from -100 to 100"],
    [[1], "'logit_bias[0]': expected a pair of token and number"],
    ['1', "'logit_bias': expected an object from token ids to numbers"],
  ])('are counted, and the first that is wrong is named: %#', async (logit_bias, message) => {
    const answer = await server().ask({ prompt: [1], logit_bias });
    expect(answer.status).toBe(400);
    expect(answer.message).toContain(message);
  });

  it('of all tokens are one map for all answers', async () => {
    const { ask, asked } = server();
    expect((await ask({ prompt: [[1], [2]], n: 3, logit_bias: biases(300) })).status).toBe(200);
    expect(asked[0]!.logitBias!.size).toBe(300);
    for (const request of asked) expect(request.logitBias).toBe(asked[0]!.logitBias);
  });
});

describe('names that a client makes up', () => {
  it('of fields beyond all that there are: the first is told', async () => {
    const fields = Object.fromEntries(texts(4000, 6).map((name) => [name, 1]));
    const answer = await server({ unknownFields: 'refuse' }).ask({ prompt: 'x', ...fields });
    expect(answer).toMatchObject({ status: 400, message: "Unknown field 'xxxxx0'." });
  });

  it.each(['(', '(a+)+$', 'x'.repeat(200_000)])('of template variables are no patterns: %#', async (name) => {
    const messages = [{ role: 'user', content: 'x' }];
    const answer = await server().ask(
      { messages, chat_template_kwargs: { [name]: 1 } },
      '/v1/chat/completions',
    );
    expect(answer.status).toBe(200);
  });
});
