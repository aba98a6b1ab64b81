import { afterAll, describe, expect, it } from 'vitest';
import { FileStore } from '../../../../src/server/files/file-store.js';
import { type ApiKey, ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { dataUrl, IMAGE, seeingToy } from '../../support/fake-sight.js';
import { bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';

const PATH = '/v1/responses';
const KEYS: readonly ApiKey[] = ['alice', 'bob'].map((name) => ({ name, key: `sk-${name}`, weight: 1 }));
const as = (name: string) => ({ authorization: `Bearer sk-${name}` });
const seen = (one: number) => [TOY_VOCAB + one, TOY_VOCAB + one + 1];
const text = (one: string) => ({ type: 'input_text', text: one });
const image = (one: number) => ({ type: 'input_image', image_url: dataUrl(one), detail: 'auto' });
const user = (...content: object[]) => ({ type: 'message', role: 'user', content });

// biome-ignore lint/suspicious/noExplicitAny: answers of any route
type Json = any;

const files = new FileStore();
afterAll(() => files.close());

function serverOf(options: ToyOptions = {}) {
  const seeing = seeingToy();
  const toy = toyServer(() => say('x'), {
    files,
    apiKeys: new ApiKeys(KEYS),
    ...options,
    model: { ...seeing.fields, ...options.model },
  });
  const ask = async (method: string, path: string, body?: object, name = 'alice') => {
    const headers = { 'content-type': 'application/json', ...as(name) };
    const answer = await toy.app.request(path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, json: (await answer.json()) as Json };
  };
  const upload = async (name: string, purpose: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> => {
    const form = new FormData();
    form.set('purpose', purpose);
    form.set('file', new Blob([bytes]), 'a.png');
    const answer = await toy.app.request('/v1/files', { method: 'POST', headers: as(name), body: form });
    return ((await answer.json()) as Json).id;
  };
  const prompts = () => toy.engine.requests.map(({ promptTokens }) => [...promptTokens]);
  return { ...seeing, toy, ask, upload, prompts };
}

describe('pictures of /v1/responses', () => {
  it('are seen again in the next turn, and among the items that are shown', async () => {
    const { ask, prompts, read } = serverOf();
    const first = await ask('POST', PATH, { input: [user(text('a'), image(5))] });
    expect(first.status).toBe(200);
    expect(first.json.usage).toMatchObject({ input_tokens: 4, input_tokens_details: { image_tokens: 2 } });
    const input = [user(image(9), text('b'))];
    const second = await ask('POST', PATH, { previous_response_id: first.json.id, input });
    expect(second.json.usage.input_tokens_details.image_tokens).toBe(4);
    const turn = [...bytesOf('ua'), ...seen(5)];
    expect(prompts()).toEqual([turn, [...turn, ...bytesOf('axu'), ...seen(9), ...bytesOf('b')]]);
    expect(read.map(({ place }) => place)).toEqual([
      'input[0].content[1]',
      'previous_response_id.content[1]',
      'input[0].content[0]',
    ]);
    const items = await ask('GET', `${PATH}/${first.json.id}/input_items`);
    expect(items.json.data[0].content).toEqual([text('a'), image(5)]);
    const none = await ask('POST', PATH, { input: 'a' });
    expect(none.json.usage.input_tokens_details).toEqual({ cached_tokens: 0, cache_write_tokens: 0 });
  });

  it('are told of in streams, counted, and kept in conversations', async () => {
    const { ask, toy, prompts, decoded } = serverOf();
    const input = [user(image(5))];
    expect((await ask('POST', `${PATH}/input_tokens`, { input })).json.input_tokens).toBe(3);
    expect(decoded).toEqual([]);
    const made = await ask('POST', '/v1/conversations', { items: input });
    const headers = { 'content-type': 'application/json', ...as('alice') };
    const body = JSON.stringify({ conversation: made.json.id, input: 'b', stream: true });
    const streamed = await toy.app.request(PATH, { method: 'POST', headers, body });
    expect(await streamed.text()).toContain('"image_tokens":2');
    expect(prompts()).toEqual([[...bytesOf('u'), ...seen(5), ...bytesOf('ub')]]);
    const items = await ask('GET', `/v1/conversations/${made.json.id}/items?order=asc`);
    expect(items.json.data[0].content).toEqual([image(5)]);
  });

  it('are what functions gave, and go with the oldest messages of one that is too long', async () => {
    const { ask, prompts } = serverOf();
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    const output = { type: 'function_call_output', call_id: 'c', output: [text('b'), image(5)] };
    expect((await ask('POST', PATH, { input: [user(text('a')), call, output] })).status).toBe(200);
    const [prompt] = prompts();
    const place = prompt!.indexOf(TOY_VOCAB + 5);
    expect(prompt!.slice(0, place + 2).slice(-4)).toEqual([...bytesOf('\nb'), ...seen(5)]);
    const long = { type: 'message', role: 'user', content: [image(9), text('a'.repeat(200))] };
    const cut = { truncation: 'auto', input: [long, user(image(5))] };
    expect((await ask('POST', PATH, cut)).status).toBe(200);
    expect(prompts()[1]).toEqual([...bytesOf('u'), ...seen(5)]);
  });

  it('are told of by the summary of a conversation that is compacted, which sees them', async () => {
    const { ask, prompts } = serverOf({ model: { maxInputLen: 4000, maxSeqLen: 4096 } });
    const input = [user(image(5), text('a')), { role: 'assistant', content: 'b' }, user(image(9))];
    const { json } = await ask('POST', `${PATH}/compact`, { input });
    expect(prompts()[0]!.slice(0, 8)).toEqual([
      ...bytesOf('u'),
      ...seen(5),
      ...bytesOf('aabu'),
      ...seen(9).slice(0, 1),
    ]);
    expect(json.output.map(({ type, content }: Json) => [type, content])).toEqual([
      ['message', [text('a')]],
      ['compaction', undefined],
    ]);
    // What the user says last is answered first.
    const context_management = [{ type: 'compaction', compact_threshold: 1 }];
    const answered = await ask('POST', PATH, { input, context_management });
    expect(answered.json.output.map(({ type }: Json) => type)).toEqual(['message']);
  });

  it.each<[string, object[], string, string]>([
    ['two sources', [{ ...image(5), file_id: 'file-1' }], '', 'expected one of image_url and file_id'],
    ['none', [{ type: 'input_image' }], '', 'expected one of image_url and file_id'],
    ['no URL', [{ type: 'input_image', image_url: 'a' }], '', 'is no data: URL'],
    ['an address', [{ type: 'input_image', image_url: 'https://a.example/b' }], '', '--allow-image-urls'],
    ['no picture', [image(0)], '', 'it is no picture'],
  ])('are refused with %s', async (_, content, place, sentence) => {
    const { ask, toy } = serverOf();
    const { status, json } = await ask('POST', PATH, { input: [user(...content)] });
    expect([status, json.error.param]).toEqual([400, `input[0].content[0]${place}`]);
    expect(json.error.message).toContain(sentence);
    expect(toy.engine.requests).toEqual([]);
  });

  it('are refused in messages of others, in too large a number, and by a model that sees none', async () => {
    const { ask } = serverOf();
    const ofSystem = await ask('POST', PATH, { input: [{ ...user(image(5)), role: 'developer' }] });
    expect(ofSystem.json.error).toMatchObject({
      param: 'input[0].content[0]',
      code: 'unsupported_parameter',
    });
    const many = await ask('POST', PATH, { input: [user(...Array.from({ length: 17 }, () => image(5)))] });
    expect(many.json.error).toMatchObject({
      param: 'input',
      message: 'The request has 17 pictures, and may have 16.',
    });
    const blind = serverOf({ model: { sight: null } });
    const refused = await blind.ask('POST', PATH, { input: [user(image(5))] });
    expect(refused.json.error).toMatchObject({ param: 'input[0].content[0]', code: 'no_vision' });
  });
});

describe('pictures of earlier turns', () => {
  const model = { maxInputLen: 4000, maxSeqLen: 4096 };

  it('are up to 64 with those of the request, which brings up to 16', async () => {
    const { ask, toy, read } = serverOf({ model });
    const sixteen = user(...Array.from({ length: 16 }, (_, i) => image(i + 1)));
    let id: string | undefined;
    for (let turn = 0; turn < 4; turn++) {
      const { status, json } = await ask('POST', PATH, { input: [sixteen], previous_response_id: id });
      expect([turn, status]).toEqual([turn, 200]);
      id = json.id;
    }
    expect(toy.engine.requests.at(-1)!.imageGrids).toHaveLength(64);
    expect(read).toHaveLength(16 + 32 + 48 + 64);
    const refused = await ask('POST', PATH, { input: [user(image(5))], previous_response_id: id });
    expect(refused).toMatchObject({ status: 400, json: { error: { param: 'input' } } });
    expect(refused.json.error.message).toBe(
      'The conversation has 65 pictures, those of earlier turns included, and may have 64: delete items that have some, or go on from an earlier response.',
    );
  });
});

describe('pictures that are stored files', () => {
  it('stand in every API by their ids, and are read anew with each turn', async () => {
    const { ask, upload, prompts } = serverOf();
    const id = await upload('alice', 'vision', Uint8Array.of(5));
    const first = await ask('POST', PATH, { input: [user({ type: 'input_image', file_id: id })] });
    expect(first.status).toBe(200);
    const second = await ask('POST', PATH, { previous_response_id: first.json.id, input: 'b' });
    expect(second.status).toBe(200);
    const messages = [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }];
    const chat = await ask('POST', '/v1/chat/completions', { messages, return_token_ids: true });
    expect(chat.json.prompt_token_ids).toEqual([...bytesOf('u'), IMAGE, IMAGE]);
    const source = { type: 'file', file_id: id };
    const asked = [{ role: 'user', content: [{ type: 'image', source }] }];
    const message = { model: 'toy', max_tokens: 4, messages: asked };
    expect((await ask('POST', '/v1/messages', message)).status).toBe(200);
    const turn = [...bytesOf('u'), ...seen(5)];
    expect(prompts()).toEqual([turn, [...turn, ...bytesOf('axub')], turn, turn]);
    await ask('DELETE', `/v1/files/${id}`);
    const gone = await ask('POST', PATH, { previous_response_id: first.json.id, input: 'b' });
    expect([gone.status, gone.json.error.code]).toEqual([404, 'file_not_found']);
    expect(gone.json.error.param).toBe('previous_response_id.content[0]');
  });

  it('are not found by another key, nor those for something else, nor more than a request may have', async () => {
    const { ask, upload, read } = serverOf();
    const of = async (id: string, name = 'alice', more: object[] = []) => {
      const content = [{ type: 'input_image', file_id: id }, ...more];
      const { status, json } = await ask('POST', PATH, { input: [user(...content)] }, name);
      return [status, json.error?.code, json.error?.message];
    };
    const id = await upload('alice', 'user_data', Uint8Array.of(5));
    expect((await of(id))[0]).toBe(200);
    expect((await of(id, 'bob')).slice(0, 2)).toEqual([404, 'file_not_found']);
    expect((await of('../../etc/passwd')).slice(0, 2)).toEqual([404, 'file_not_found']);
    const other = await of(await upload('alice', 'batch', Uint8Array.of(5)));
    expect(other.slice(0, 2)).toEqual([400, 'invalid_image']);
    expect(other[2]).toContain("names a file for 'batch'; pictures are files for vision or user_data.");
    read.length = 0;
    const large = await upload('alice', 'vision', new Uint8Array(7e6).fill(7));
    const both = await of(large, 'alice', [{ type: 'input_image', file_id: large }]);
    expect(both[2]).toContain('14000000 bytes together, and may have 12000000.');
    expect(read).toEqual([]);
  });
});
