import { expect, it } from 'vitest';
import { renderedCodec } from '../support/rendered-codec.js';
import { say, toyServer } from '../support/toy-server.js';

/** Opens the reasoning of each answer, which no field of a request asks for. */
const TEMPLATE = '{% for m in messages %}{{ m.role + m.content }}{% endfor %}<think>\n{# </think> #}';
const SAID = 'Hm.\nSo "a" it is.\n</think>\n\n{"a":1}\nand more';

const schema = { type: 'object', properties: { a: { const: 1 } } };
const format = { type: 'json_schema', name: 'n', schema };
const messages = [{ role: 'user', content: 'hi' }];
const chat = { messages, stop: ['\n'] };

it.each([
  [
    '/v1/chat/completions',
    { ...chat, response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } },
  ],
  ['/v1/chat/completions', { ...chat, guided_json: schema }],
  ['/v1/chat/completions', { ...chat, guided_choice: ['{"a":1}'] }],
  ['/v1/responses', { input: 'hi', stop: ['\n'], text: { format } }],
  ['/v1/messages', { messages, max_tokens: 50, stop_sequences: ['\n'], output_config: { format } }],
  ['/api/chat', { model: 'toy', messages, stream: false, format: schema, options: { stop: ['\n'] } }],
  ['/api/generate', { model: 'toy', prompt: 'hi', stream: false, format: schema, options: { stop: ['\n'] } }],
])('%s: %j is meant for the answer, not for the reasoning before it', async (path, body) => {
  const toy = toyServer(() => say(SAID), { model: { codec: renderedCodec(TEMPLATE) } });
  const response = await toy.post(path, body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(toy.engine.requests[0]!.guide?.guide).toContain('</think>');
  // The answer is whole, and what follows its stop string is none of it.
  expect(text).toContain(JSON.stringify('{"a":1}'));
  expect(text).toContain('it is.');
  expect(text).not.toContain('more');
});
