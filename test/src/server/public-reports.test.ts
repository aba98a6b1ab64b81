import { describe, expect, it } from 'vitest';
import { bytesOf, templatedCodec } from '../support/toy-codec.js';
import { readChunks, say, toyServer } from '../support/toy-server.js';

/** Reports against other servers whose right answer no other test has; docs/lab/public-reports.md lists all. */

const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Weather in Ur?' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
const THINKS_AND_CALLS = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}<think></think>';

interface Choice {
  message: { content: string | null; reasoning?: string; tool_calls?: { function: { arguments: string } }[] };
  delta: { content?: string | null };
  logprobs: { tokens: string[]; top_logprobs: unknown[]; text_offset: number[] };
  finish_reason: string;
}
interface Answer {
  choices: [Choice];
  error: { message: string; param: string };
}

function server(script: Parameters<typeof toyServer>[0]) {
  const toy = toyServer(script, {
    model: { codec: templatedCodec(THINKS_AND_CALLS), maxInputLen: 4000, maxSeqLen: 5000 },
  });
  const ask = async (path: string, fields: object) => {
    const response = await toy.post(path, fields);
    return { status: response.status, ...((await response.json()) as Answer) };
  };
  return { toy, ask };
}

it('vllm#52393: a stop string that the reasoning says ends nothing', async () => {
  const { ask } = server(() => say('<think>Question: is it wet?</think>A: wet. Question: more?'));
  const { choices } = await ask(CHAT, { messages, stop: ['Question:'] });
  expect(choices[0].message).toMatchObject({ reasoning: 'Question: is it wet?', content: 'A: wet. ' });
  expect(choices[0].finish_reason).toBe('stop');
});

it('vllm#47903, sglang#30480: a call that is cut is no content, whole and streamed', async () => {
  const text = 'I will check.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "San Fr';
  const { toy, ask } = server(() => [...say(text).slice(0, -1), { finish: 'length' }]);
  const [choice] = (await ask(CHAT, { messages, tools })).choices;
  const chunks = await readChunks<Answer>(await toy.post(CHAT, { messages, tools, stream: true }));
  const streamed = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('');
  expect(choice.message.content).toBe(streamed);
  expect(streamed.trim()).toBe('I will check.');
  expect(choice.message.tool_calls![0]!.function.arguments).toBe('{"city": "San Fr');
  expect(choice.finish_reason).toBe('length');
});

it('llama.cpp#26849: a function that is chosen by name has to be called', async () => {
  const { toy, ask } = server(() =>
    say('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ur"}}\n</tool_call>'),
  );
  const named = { type: 'function', function: { name: 'get_weather' } };
  await ask(CHAT, { messages, tools, tool_choice: named });
  expect(JSON.stringify(toy.engine.requests[0]!.guide)).toContain('get_weather');
});

it('vllm#55974: a reference to an item that is not there is told by its place', async () => {
  const { ask } = server(() => say('x'));
  const refused = await ask('/v1/responses', { input: [{ type: 'item_reference', id: 'msg_none' }] });
  expect(refused).toMatchObject({ status: 404, error: { param: 'input[0].id' } });
});

it('inference#5270: completions take logprobs of 0 as a wish', async () => {
  const { ask } = server(() => [
    ...bytesOf('ab').map((token) => ({ tokens: [token], logProbs: [-1] })),
    { finish: 'stop' },
  ]);
  const [choice] = (await ask('/v1/completions', { prompt: 'x', logprobs: 0 })).choices;
  expect(choice.logprobs).toMatchObject({ tokens: ['a', 'b'], text_offset: [0, 1] });
});

describe('llama.cpp#22606, imp#1259: a schema that is none', () => {
  it.each([
    ['a quantifier of nothing', { type: 'string', pattern: '^+[a-z]$' }],
    ['another', { type: 'string', pattern: '^{2}times$' }],
    ['groups in groups', { type: 'string', pattern: `${'('.repeat(5000)}a${')'.repeat(5000)}` }],
    ['a reference to nothing', { $ref: '#/definitions/missing' }],
    ['a reference to another document', { $ref: 'https://example.com/x.json' }],
  ])('is refused where it is strict, and named where it is not: %s', async (_, schema) => {
    const { toy, ask } = server(() => say('x'));
    const format = (strict: boolean) => ({
      response_format: { type: 'json_schema', json_schema: { name: 'a', strict, schema } },
    });
    const refused = await ask(CHAT, { messages, ...format(true) });
    expect(refused).toMatchObject({ status: 400, error: { param: 'response_format' } });
    const loose = await toy.post(CHAT, { messages, ...format(false) });
    expect(loose.headers.get('x-skein-warning')).toContain('The schema of the answer is not followed');
  });
});
