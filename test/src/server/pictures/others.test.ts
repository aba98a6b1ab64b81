import { describe, expect, it } from 'vitest';
import { askedRequest } from '../../../../src/library/asked-request.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { base64Of, dataUrl, seeingToy } from '../../support/fake-sight.js';
import { bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, toyModel, toyServer } from '../../support/toy-server.js';

const SEEN = [TOY_VOCAB + 5, TOY_VOCAB + 6];
const FILE = base64Of(5);

function serverOf() {
  const seeing = seeingToy();
  const toy = toyServer(() => say('x'), { model: seeing.fields });
  const post = async (path: string, body: object) => {
    const response = await toy.post(path, { model: 'toy', stream: false, ...body });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  };
  const prompts = () => toy.engine.requests.map(({ promptTokens }) => [...promptTokens]);
  return { ...seeing, toy, post, prompts };
}

describe('pictures of /v1/messages', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: FILE } };
  const body = (content: object[]) => ({ max_tokens: 5, messages: [{ role: 'user', content }] });

  it('stand among texts, and in what tools gave', async () => {
    const { post, prompts, read, toy } = serverOf();
    const messages = [
      { role: 'user', content: [image, { type: 'text', text: 'a' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'b' }, image] },
          { type: 'text', text: 'c' },
        ],
      },
    ];
    const { status } = await post('/v1/messages', { max_tokens: 5, messages });
    expect(status).toBe(200);
    const [prompt] = prompts();
    expect(prompt!.slice(0, 5)).toEqual([...bytesOf('u'), ...SEEN, ...bytesOf('aa')]);
    const behind = prompt!.lastIndexOf(SEEN[0]!);
    expect(prompt!.slice(behind - 1, behind + 2)).toEqual([...bytesOf('b'), ...SEEN]);
    expect(toy.engine.requests[0]!.imageGrids).toEqual([
      [1, 1, 2],
      [behind, 1, 2],
    ]);
    expect(read.map(({ place }) => place)).toEqual([
      'messages[0].content[0]',
      'messages[2].content[0].content[1]',
    ]);
  });

  it('are counted, and refused by the name of their place', async () => {
    const { post } = serverOf();
    expect((await post('/v1/messages/count_tokens', body([image]))).json).toEqual({ input_tokens: 3 });
    const address = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } };
    const refused = await post('/v1/messages', body([address]));
    expect(refused).toMatchObject({ status: 400, json: { error: { type: 'invalid_request_error' } } });
    expect(JSON.stringify(refused.json)).toMatch(
      /messages\[0\]\.content\[0\]' is the address.*--allow-image-urls/,
    );
    const broken = { ...image, source: { ...image.source, data: '*' } };
    const wrong = await post('/v1/messages', body([broken]));
    expect(wrong.status).toBe(400);
    expect(JSON.stringify(wrong.json)).toContain("'messages[0].content[0]' should hold a picture's file");
  });
});

describe("Ollama's pictures", () => {
  it('stand before the text of their message', async () => {
    const { post, prompts, read } = serverOf();
    const messages = [{ role: 'user', content: 'a', images: [FILE, base64Of(9)] }];
    expect((await post('/api/chat', { messages })).status).toBe(200);
    const generated = await post('/api/generate', { prompt: 'b', images: [FILE] });
    expect(generated.status).toBe(200);
    // What a picture is cannot be brought again as tokens.
    expect(generated.json).not.toHaveProperty('context');
    expect(prompts()).toEqual([
      [...bytesOf('u'), ...SEEN, TOY_VOCAB + 9, TOY_VOCAB + 10, ...bytesOf('a')],
      [...bytesOf('u'), ...SEEN, ...bytesOf('b')],
    ]);
    expect(read.map(({ place }) => place)).toEqual([
      'messages[0].images[0]',
      'messages[0].images[1]',
      'images[0]',
    ]);
  });

  it('are left out with the oldest messages of a chat that is too long', async () => {
    const { post, toy } = serverOf();
    const messages = [
      { role: 'user', content: 'a'.repeat(200), images: [base64Of(9)] },
      { role: 'user', content: 'b', images: [FILE] },
    ];
    expect((await post('/api/chat', { messages })).status).toBe(200);
    expect(toy.engine.requests[0]).toMatchObject({
      promptTokens: Int32Array.from([...bytesOf('u'), ...SEEN, ...bytesOf('b')]),
      imageGrids: [[1, 1, 2]],
    });
  });

  it.each([
    ['/api/generate', { prompt: 'a', images: [FILE], context: [97] }, /'images' and 'context' exclude/],
    ['/api/generate', { prompt: 'a', images: [FILE], raw: true }, /'images' and 'raw' exclude/],
    ['/api/generate', { prompt: 'a', images: ['*'] }, /'images\[0\]'.*base64/],
    ['/api/chat', { messages: [{ role: 'system', content: 'a', images: [FILE] }] }, /role 'system'/],
  ])('are refused by %s: %j', async (path, fields, sentence) => {
    const { status, json } = await serverOf().post(path, fields);
    expect(status).toBe(400);
    expect(json.error).toMatch(sentence);
  });

  it('are an ability that a model has or has not', async () => {
    const { json } = await serverOf().post('/api/show', {});
    expect(json.capabilities).toContain('vision');
    const props = (await (await serverOf().toy.get('/props')).json()) as { modalities: object };
    expect(props.modalities).toEqual({ vision: true, audio: false });
    const listed = async ({ get }: Pick<ReturnType<typeof toyServer>, 'get'>) =>
      ((await (await get('/v1/models')).json()) as { data: { input_modalities: string[] }[] }).data[0]!
        .input_modalities;
    expect(await listed(serverOf().toy)).toEqual(['text', 'image']);
    const blind = toyServer(() => say('x'));
    expect(await listed(blind)).toEqual(['text']);
    const shown = (await (await blind.post('/api/show', { model: 'toy' })).json()) as typeof json;
    expect(shown.capabilities).not.toContain('vision');
  });
});

describe('pictures of a program', () => {
  it('are bytes, a Blob or a data: URL, and read as those of a request', async () => {
    const { fields, read } = seeingToy();
    const model = toyModel(new FakeEngine(() => []), fields);
    const content = [
      { type: 'image', image: Uint8Array.of(5) },
      { type: 'image', image: new Blob([Uint8Array.of(5)]) },
      { type: 'image_url', image_url: { url: dataUrl(5) } },
    ];
    const { request } = await askedRequest(model, { messages: [{ role: 'user', content }] });
    expect(read.map(({ file }) => file)).toEqual([[5], [5], [5]]);
    expect(request).toMatchObject({
      promptTokens: Int32Array.from([...bytesOf('u'), ...SEEN, ...SEEN, ...SEEN]),
      imageGrids: [
        [1, 1, 2],
        [3, 1, 2],
        [5, 1, 2],
      ],
    });
    const missing = { type: 'image', image: '/no/such/file.png' };
    await expect(askedRequest(model, { messages: [{ role: 'user', content: [missing] }] })).rejects.toThrow(
      /'messages\[0\]\.content\[0\]\.image' cannot be read: .*no such file/i,
    );
  });
});
