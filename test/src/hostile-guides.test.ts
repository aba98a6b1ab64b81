import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { HOSTILE_GUIDES } from '../../tools/request-costs/hostile-guides.js';
import { postJson } from '../support/post-json.js';
import { startServer } from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';
import { dataFrames } from './support/stream-frames.js';

const model = fileURLToPath(new URL('../../models/demo/gosling', import.meta.url));
const started = startedServers();

it('hostile guides fail as the fault of who sent them, and a stream beside them completes as alone', async () => {
  const server = await started(startServer(['--model', model]));
  const complete = (fields: object) =>
    postJson(`${server.url}/v1/completions`, { prompt: 'Once', max_tokens: 120, seed: 7, ...fields });
  const innocent = async () => {
    const response = await complete({ ignore_eos: true, stream: true });
    const texts = dataFrames(await response.text()).map(({ choices }) => choices[0]?.text ?? '');
    return { status: response.status, text: texts.join('') };
  };
  const guided = async () => {
    const response = await complete({ guided_regex: '[a-z]{3,9}( [a-z]{3,9}){4}' });
    return ((await response.json()) as { choices: { text: string }[] }).choices[0]!.text;
  };
  const alone = [await innocent(), await guided()];

  let isOver = false;
  const statuses: number[] = [];
  const words: string[] = [];
  const attack = async (fields: object) => {
    do {
      const response = await complete({ temperature: 1.5, n: 4, max_tokens: 40, ...fields });
      statuses.push(response.status);
      words.push(await response.text());
    } while (!isOver);
  };
  const { explodes, explodesAtOnce, creeps } = HOSTILE_GUIDES;
  const attacks = [
    attack(explodes.fields),
    attack({ ...explodes.fields, stream: true }),
    attack({ ...explodesAtOnce.fields, stream: true }),
    attack(creeps.fields),
  ];
  expect([await innocent(), await guided()]).toEqual(alone);
  isOver = true;
  await Promise.all(attacks);

  expect(statuses.every((status) => status === 200 || status === 400)).toBe(true);
  expect(statuses).toContain(400);
  const errors = words.filter((text) => text.includes('"error"'));
  expect(errors.length).toBeGreaterThan(2);
  for (const text of errors) {
    expect(text).toContain('"type":"invalid_request_error"');
    expect(text).toContain('The guide is too ambiguous');
  }
  // A stream that had begun receives it as an event.
  expect(words.some((text) => text.startsWith('data: ') && text.includes('"error"'))).toBe(true);
  expect([await innocent(), await guided()]).toEqual(alone);
});

it('a guide and bans that leave no token are the fault of who sent them, by every route', async () => {
  const server = await started(startServer(['--model', model]));
  const messages = [{ role: 'user', content: 'Hi' }];
  const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  const tools = [{ type: 'function', function: { name: 'honk', parameters } }];
  const asked: [string, object][] = [
    ['chat/completions', { messages, guided_choice: ['yes'], min_tokens: 20 }],
    ['chat/completions', { messages, allowed_token_ids: [5], guided_regex: 'abc' }],
    ['chat/completions', { messages, tools, tool_choice: 'required', no_repeat_ngram_size: 2 }],
    ['completions', { prompt: 'a', allowed_token_ids: [5, 6], no_repeat_ngram_size: 1 }],
    ['responses', { input: 'a', allowed_token_ids: [5], no_repeat_ngram_size: 1 }],
    [
      'messages',
      {
        messages,
        max_tokens: 50,
        no_repeat_ngram_size: 1,
        output_config: { format: { type: 'json_schema', schema: parameters } },
      },
    ],
  ];
  for (const [path, fields] of asked)
    for (const stream of [false, true]) {
      const response = await postJson(`${server.url}/v1/${path}`, { ...fields, stream });
      const text = await response.text();
      expect([path, response.status, text]).toEqual([path, stream ? expect.any(Number) : 400, text]);
      expect(text).toContain('invalid_request_error');
      expect(text).toMatch(/leave no token for place \d+ of the answer/);
    }
  expect(server.output().stderr).not.toContain('request failed');
});
