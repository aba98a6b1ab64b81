import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import type { TextCodec } from '../../../../src/generation/text-model.js';
import { BOS_TOKEN, bytesOf, toyCodec } from '../../support/toy-codec.js';
import type { ToyOptions } from '../../support/toy-server.js';
import { readChunks, toyServer } from '../../support/toy-server.js';

const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const messages = [{ role: 'user', content: 'hi' }];

interface Answer {
  choices: {
    message: { content: string };
    logprobs: { content: { token: string; top_logprobs: { token: string }[] }[]; tokens: string[] };
    delta: { role?: string; content?: string };
  }[];
  timings?: Record<string, number>;
  error?: { param: string; message: string };
}

/** What reaches the engine, and the answer. */
async function ask(path: string, fields: object, options: ToyOptions = {}) {
  let seen: TokenRequest | undefined;
  const toy = toyServer((request) => {
    seen = request;
    return [
      { tokens: [120], logProbs: [-1], top: [[[121, -2]]], cachedTokens: 1 },
      { tokens: [121], logProbs: [-2], top: [[[120, -1]]] },
      { finish: 'stop' },
    ];
  }, options);
  const response = await toy.post(path, {
    ...(path === CHAT ? { messages } : { prompt: 'abcdef' }),
    ...fields,
  });
  return { status: response.status, seen: seen!, response };
}

async function answerOf(path: string, fields: object): Promise<Answer> {
  return (await (await ask(path, fields)).response.json()) as Answer;
}

describe.each([CHAT, COMPLETIONS])('%s', (path) => {
  it.each<[object, Partial<TokenRequest>]>([
    [
      { typical_p: 0.5, top_n_sigma: 2 },
      { typicalP: 0.5, topNSigma: 2 },
    ],
    [{ top_n_sigma: -1 }, { topNSigma: 0 }],
    [
      { xtc_probability: 0.5, xtc_threshold: 0.2 },
      { xtcProbability: 0.5, xtcThreshold: 0.2 },
    ],
    [
      { dynatemp_range: 0.5, dynatemp_exponent: 2 },
      { dynatempRange: 0.5, dynatempExponent: 2 },
    ],
    [{ temperature_last: true }, { temperatureLast: true }],
    [
      { mirostat: 2, mirostat_tau: 3, mirostat_eta: 0.2 },
      { mirostat: 2, mirostatTau: 3, mirostatEta: 0.2 },
    ],
    [
      { dry_multiplier: 0.8, dry_base: 2, dry_allowed_length: 3, dry_penalty_last_n: 64 },
      {
        dryMultiplier: 0.8,
        dryBase: 2,
        dryAllowedLength: 3,
        dryPenaltyLastN: 64,
        dryBreakers: ['\n', ':', '"', '*'].map(bytesOf),
      },
    ],
    [
      { dry_multiplier: 0.8, dry_sequence_breakers: ['ab', '<257'] },
      // The second is within a token, and begins with one.
      { dryBreakers: [bytesOf('ab'), [BOS_TOKEN], ...[bytesOf('<257')]] },
    ],
    [{ allowed_token_ids: [65, 66] }, { allowedTokens: [65, 66] }],
    [{ repeat_penalty: 1.25 }, { repetitionPenalty: 1.25, penaltyLastN: 64 }],
    [
      { repeat_penalty: 1.25, repeat_last_n: -1 },
      { repetitionPenalty: 1.25, penaltyLastN: -1 },
    ],
    [{ n_predict: 7 }, { maxNewTokens: 7 }],
    [
      { guided_json: { type: 'object' }, guided_whitespace_pattern: ' ?' },
      {
        guide: {
          type: 'structural_tag',
          guide:
            '{"type":"structural_tag","format":{"type":"json_schema","json_schema":{"type":"object"},"whitespace_pattern":" ?"}}',
        },
      },
    ],
    [
      { logit_bias: { ab: 2, 7: -1 } },
      {
        logitBias: new Map([
          [7, -1],
          [97, 2],
          [98, 2],
        ]),
      },
    ],
    [
      {
        logit_bias: [
          [65, 1.5],
          ['b', false],
          ['67', 3],
        ],
      },
      {
        logitBias: new Map([
          [65, 1.5],
          [67, 3],
          [98, Number.NEGATIVE_INFINITY],
        ]),
      },
    ],
    [{ grammar: 'root ::= "a"' }, { guide: { type: 'ebnf_grammar', guide: 'root ::= "a"' } }],
    [{ json_schema: { type: 'object' } }, { guide: { type: 'json_schema', guide: '{"type":"object"}' } }],
    [{ guided_json_object: true }, { guide: { type: 'json', guide: '' } }],
  ])('%j reaches the engine', async (fields, expected) => {
    const { status, seen } = await ask(path, fields);
    expect(status).toBe(200);
    for (const [name, value] of Object.entries(expected)) {
      const found = seen[name as keyof TokenRequest];
      if (name === 'dryBreakers')
        expect(new Set((found as number[][]).map(String))).toEqual(
          new Set((value as number[][]).map(String)),
        );
      else expect(found).toEqual(value);
    }
  });

  it.each<[object, string]>([
    [{ typical_p: 1.5 }, 'typical_p'],
    [{ mirostat: 3 }, 'mirostat'],
    [{ dry_sequence_breakers: [''] }, 'dry_sequence_breakers[0]'],
    [{ dry_sequence_breakers: new Array(17).fill('a') }, 'dry_sequence_breakers'],
    [{ allowed_token_ids: [] }, 'allowed_token_ids'],
    [{ allowed_token_ids: new Array(300).fill(1) }, 'allowed_token_ids'],
    [{ logit_bias: [['', 1]] }, 'logit_bias[0]'],
    [{ logit_bias: { a: 101 } }, 'logit_bias.a'],
    [{ truncate_prompt_tokens: 0 }, 'truncate_prompt_tokens'],
    [{ return_progress: 'yes' }, 'return_progress'],
    [{ guided_whitespace_pattern: ' ' }, 'guided_whitespace_pattern'],
    [{ grammar: 'root ::= "a"', json_schema: {} }, 'json_schema'],
    [{ repetition_penalty: 1.5, repeat_penalty: 1.25 }, 'repeat_penalty'],
    [{ max_tokens: 5, n_predict: 6 }, 'n_predict'],
    [{ guided_regex: 'a', guided_whitespace_pattern: ' ' }, 'guided_regex'],
    [{ guided_json: {}, guided_whitespace_pattern: '[ a]x' }, 'guided_json'],
  ])('%j is refused by name', async (fields, param) => {
    const { status, response } = await ask(path, fields);
    expect(status).toBe(400);
    expect(((await response.json()) as Answer).error!.param).toBe(param);
  });

  it('shares no prompt without cache_prompt', async () => {
    const salts = [];
    for (const fields of [{}, { cache_prompt: false }, { cache_prompt: false }]) {
      salts.push((await ask(path, fields)).seen.cacheSalt ?? 0n);
    }
    expect(new Set(salts).size).toBe(3);
  });

  it('keeps the end of a prompt that is too long', async () => {
    const whole = (await ask(path, { max_tokens: 4 })).seen.promptTokens;
    const few = (await ask(path, { max_tokens: 4, truncate_prompt_tokens: 3 })).seen.promptTokens;
    expect(few).toEqual(whole.slice(-3));
    const model = { maxInputLen: 8, maxSeqLen: 9 };
    expect((await ask(path, { max_tokens: 4 }, { model })).status).toBe(400);
    const room = (await ask(path, { max_tokens: 4, truncate_prompt_tokens: -1 }, { model })).seen
      .promptTokens;
    expect(room).toEqual(whole.slice(-5));
  });

  it('tells timings with the answer and with each chunk, if asked', async () => {
    expect((await answerOf(path, {})).timings).toBeUndefined();
    const { timings } = await answerOf(path, { timings_per_token: true });
    expect(timings).toMatchObject({ cache_n: 1, predicted_n: 2 });
    expect(timings!.prompt_n).toBeGreaterThan(0);
    for (const value of Object.values(timings!)) expect(value).toBeGreaterThanOrEqual(0);
    const { response } = await ask(path, { timings_per_token: true, stream: true });
    const chunks = await readChunks<Answer>(response);
    expect(chunks.map(({ timings: told }) => told!.predicted_n).at(-1)).toBe(2);
  });
});

it('names tokens by their ids', async () => {
  const fields = { logprobs: true, top_logprobs: 1, return_tokens_as_token_ids: true };
  const [choice] = (await answerOf(CHAT, fields)).choices;
  expect(choice!.logprobs.content.map(({ token }) => token)).toEqual(['token_id:120', 'token_id:121']);
  expect(choice!.logprobs.content[0]!.top_logprobs[0]!.token).toBe('token_id:121');
  const { response } = await ask(CHAT, { ...fields, stream: true });
  const streamed = (await readChunks<Answer>(response)).flatMap(({ choices }) =>
    choices.flatMap(({ logprobs }) => logprobs?.content ?? []),
  );
  expect(streamed).toEqual(choice!.logprobs.content);
  const legacy = await answerOf(COMPLETIONS, { logprobs: 1, return_tokens_as_token_ids: true });
  expect(legacy.choices[0]!.logprobs.tokens).toEqual(['token_id:120', 'token_id:121']);
});

describe('echo in chat', () => {
  const continued = {
    messages: [...messages, { role: 'assistant', content: 'It is ' }],
    continue_final_message: true,
    echo: true,
  };

  it('puts the content of the last message before the answer', async () => {
    expect((await answerOf(CHAT, continued)).choices[0]!.message.content).toBe('It is xy');
  });

  it('is the same in a stream', async () => {
    const { response } = await ask(CHAT, { ...continued, stream: true });
    const deltas = (await readChunks<Answer>(response)).flatMap(({ choices }) =>
      choices.map(({ delta }) => delta),
    );
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe('It is xy');
    expect(deltas.filter(({ role }) => role !== undefined)).toHaveLength(1);
  });

  it('repeats no message of the user', async () => {
    expect((await answerOf(CHAT, { echo: true })).choices[0]!.message.content).toBe('xy');
  });
});

it('documents reach the chat template as a variable', async () => {
  const seen: unknown[] = [];
  const documents = [{ title: 'Swans', text: 'They are white.' }];
  const codec: TextCodec = {
    ...toyCodec,
    encodeChat: (asked, options) => {
      seen.push(options.variables);
      return toyCodec.encodeChat(asked, options);
    },
  };
  const { status } = await ask(CHAT, { documents }, { model: { codec } });
  expect(status).toBe(200);
  expect(seen).toEqual([{ documents }]);
  const blind = { ...codec, templateSource: '{{ messages }}' };
  const { status: refused } = await ask(CHAT, { documents }, { model: { codec: blind } });
  expect(refused).toBe(400);
  const twice = await ask(CHAT, { documents, chat_template_kwargs: { documents } });
  expect(twice.status).toBe(400);
});
