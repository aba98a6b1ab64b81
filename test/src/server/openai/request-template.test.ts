import { expect, it } from 'vitest';
import type { ChatRenderOptions } from '../../../../src/generation/text-model.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'hi' }];
const chat_template = '{{ messages }}{{ tone }}';

function server(trustsTemplates: boolean) {
  const seen: ChatRenderOptions[] = [];
  const own = templatedCodec('{{ messages }}');
  const encodeChat: typeof own.encodeChat = (given, options) => {
    seen.push(options);
    return own.encodeChat(given, options);
  };
  const toy = toyServer(() => say('x'), { trustsTemplates, model: { codec: { ...own, encodeChat } } });
  return { seen, post: (path: string, fields: object) => toy.post(path, { messages, ...fields }) };
}

it.each(['/v1/chat/completions', '/v1/chat/completions/render', '/tokenize', '/apply-template'])(
  '%s takes a template where the server lets it',
  async (path) => {
    const trusting = server(true);
    // Its variables are those that a request may set.
    const fields = { chat_template, chat_template_kwargs: { tone: 'kind' } };
    expect((await trusting.post(path, fields)).status).toBe(200);
    expect(trusting.seen[0]).toMatchObject({ template: chat_template, variables: { tone: 'kind' } });
    const wary = await server(false).post(path, { chat_template });
    const { error } = (await wary.json()) as { error: { param: string; code: string; message: string } };
    expect([wary.status, error.param, error.code]).toEqual([400, 'chat_template', 'unsupported_parameter']);
    expect(error.message).toContain('--trust-request-chat-template');
    expect((await server(false).post(path, { chat_template: null })).status).toBe(200);
  },
);

it('takes no template longer than a template is', async () => {
  const long = await server(true).post('/v1/chat/completions', { chat_template: 'x'.repeat(65_537) });
  expect(long.status).toBe(400);
});
