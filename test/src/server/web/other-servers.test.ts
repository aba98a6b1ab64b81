import { describe, expect, it } from 'vitest';
import { templatedCodec } from '../../support/toy-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'Hi' }];
const json = async (response: Response) => (await response.json()) as Record<string, unknown>;

describe("routes of llama.cpp's server and vLLM", () => {
  it('/load counts the requests that are being answered', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 60_000 }, { finish: 'stop' }]);
    expect(await json(await toy.get('/load'))).toEqual({ server_load: 0 });
    const stream = await toy.post('/v1/chat/completions', { messages, stream: true });
    expect(await json(await toy.get('/load'))).toEqual({ server_load: 1 });
    await stream.body!.cancel();
    await expect.poll(async () => json(await toy.get('/load'))).toEqual({ server_load: 0 });
  });

  it('/props and /tokenizer_info tell about the model', async () => {
    const template = '{% for m in messages %}{{ m.content }}{% endfor %}';
    const toy = toyServer(() => say('x'), {
      model: { codec: templatedCodec(template), maxActiveRequests: 7, fileName: 'toy.gguf' },
    });
    expect(await json(await toy.get('/props'))).toMatchObject({
      default_generation_settings: { n_ctx: 256, params: { n_predict: 64 } },
      total_slots: 7,
      model_path: 'toy.gguf',
      model_alias: 'toy',
      chat_template: template,
    });
    expect(await json(await toy.get('/tokenizer_info?model=toy'))).toMatchObject({
      model: 'toy',
      model_max_length: 256,
      chat_template: template,
    });
    expect((await toy.get('/props?model=other')).status).toBe(404);
    expect((await toy.get('/props?modle=toy')).status).toBe(400);
    const change = await toy.post('/props', { chat_template: '' });
    expect([change.status, await change.json()]).toMatchObject([400, { error: { code: 'not_supported' } }]);
  });

  it('/props and show tell the template of conversations with functions, where it is another', async () => {
    const codec = { ...templatedCodec('plain'), toolTemplateSource: 'tools' };
    const toy = toyServer(() => say('x'), { model: { codec } });
    const props = await json(await toy.get('/props'));
    expect(props).toMatchObject({ chat_template: 'plain', chat_template_tool_use: 'tools' });
    const alone = toyServer(() => say('x'), {
      model: { codec: { ...codec, templateSource: null } },
    });
    expect(await json(await alone.post('/api/show', { model: 'toy' }))).toMatchObject({ template: 'tools' });
    const same = toyServer(() => say('x'), { model: { codec: { ...codec, toolTemplateSource: 'plain' } } });
    expect(await json(await same.get('/props'))).not.toHaveProperty('chat_template_tool_use');
  });

  it('/apply-template shows the prompt of a conversation', async () => {
    const template =
      '{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}{{ tools and "tools" }}';
    const toy = toyServer(() => say('x'), { model: { codec: templatedCodec(template) } });
    const { prompt } = await json(await toy.post('/apply-template', { messages }));
    expect(prompt).toContain('<user>Hi');
    const tokens = await json(await toy.post('/tokenize', { messages }));
    const text = await json(await toy.post('/detokenize', { tokens: tokens.tokens }));
    expect(prompt).toBe(text.prompt);
    const refused = await toy.post('/apply-template', { prompt: 'a' });
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain("'prompt' is not supported: use 'messages'.");
  });

  it("/invocations finds SageMaker's route by the body", async () => {
    const toy = toyServer(() => say('x'));
    const object = async (body: unknown) => json(await toy.post('/invocations', body));
    expect(await object({ messages })).toMatchObject({ object: 'chat.completion' });
    expect(await object({ prompt: 'a', misspelt: 1 })).toMatchObject({ object: 'text_completion' });
    const told = await toy.post('/invocations', { prompt: 'a', misspelt: 1 });
    expect(told.headers.get('x-unknown-fields')).toBe('misspelt');
    const errors = [
      [{ input: 'a' }, 'embeds texts'],
      [{ text_1: 'a', text_2: 'b' }, 'scores texts'],
      [{ query: 'a', documents: ['b'] }, 'scores texts'],
      [{}, "'messages' (/v1/chat/completions)"],
      [[1], "'messages' (/v1/chat/completions)"],
    ] as const;
    for (const [body, words] of errors) expect(JSON.stringify(await object(body))).toContain(words);
  });

  it('/classify says that no model does it', async () => {
    const response = await toyServer(() => say('x')).post('/classify', { model: 'toy', input: 'a' });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        param: 'model',
        code: 'model_not_supported',
        message: "The model 'toy' classifies no texts.",
      },
    });
  });
});

describe('a prompt beyond the context', () => {
  it.each([
    ['longer than any prompt', { prompt: 'x'.repeat(230) }],
    ['too long with its answer', { prompt: 'x'.repeat(100), max_tokens: 200 }],
    ['too long whatever its tokens are', { prompt: 'x'.repeat(100_000) }],
  ])('%s is refused in words that routers know', async (_, body) => {
    const response = await toyServer(() => say('x')).post('/v1/completions', body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('context_length_exceeded');
    expect(error.message).toMatch(/^This model's maximum context length is \d+ tokens\. However, /);
  });
});

describe("routes of SGLang's server", () => {
  it('tell about the model, the server and the load', async () => {
    const toy = toyServer(() => say('x'), { model: { maxActiveRequests: 7, fileName: 'toy.gguf' } });
    for (const path of ['/get_model_info', '/model_info']) {
      expect(await json(await toy.get(path))).toMatchObject({
        model_path: 'toy.gguf',
        served_model_name: 'toy',
        is_generation: true,
        max_context_length: 256,
      });
    }
    for (const path of ['/get_server_info', '/server_info']) {
      expect(await json(await toy.get(path))).toMatchObject({
        served_model_name: 'toy',
        dp_size: 1,
        context_length: 256,
        max_running_requests: 7,
      });
    }
    const load = await json(await toy.get('/get_load'));
    expect(load).toMatchObject([{ dp_rank: 0, num_reqs: 0, num_waiting_reqs: 0 }]);
  });

  it('/health_generate asks the engine for a token', async () => {
    expect((await toyServer(() => say('x')).get('/health_generate')).status).toBe(200);
    const failing = toyServer(() => [{ error: 'The engine has failed.' }] as never);
    expect((await failing.get('/health_generate')).status).toBe(503);
  });
});
