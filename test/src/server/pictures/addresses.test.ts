import { describe, expect, it } from 'vitest';
import { PicturesBusyError } from '../../../../models/images/picture-error.js';
import { InvalidRequestError } from '../../../../src/errors/request-errors.js';
import type { PictureSources } from '../../../../src/generation/pictures/picture-files.js';
import { askedRequest } from '../../../../src/library/asked-request.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { dataUrl, seeingToy } from '../../support/fake-sight.js';
import { bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyModel, toyServer } from '../../support/toy-server.js';

const URL_OF_9 = 'https://a.example/9';
const seen = (one: number) => [TOY_VOCAB + one, TOY_VOCAB + one + 1];

/** A way on which the last number of an address is the file. */
function wayOf(asked: { key: string; name: string; place: string }[]) {
  return (key: string): NonNullable<PictureSources['fetched']> =>
    async (named, { take }) =>
      named.map(({ name, place }) => {
        asked.push({ key, name, place });
        const last = name.split('/').at(-1)!;
        if (last === 'busy') throw new PicturesBusyError('Too many pictures are fetched at present.');
        if (last === 'gone') throw new InvalidRequestError(`'${place}' is gone.`, place, 'invalid_image_url');
        const file = last === 'long' ? new Uint8Array(7e6).fill(7) : Uint8Array.of(Number(last));
        take(file.length);
        return file;
      });
}

function serverOf(options: ToyOptions = {}) {
  const asked: { key: string; name: string; place: string }[] = [];
  const { fields, read } = seeingToy();
  const apiKeys = new ApiKeys([{ name: 'alice', key: 'sk-alice', weight: 1 }]);
  const toy = toyServer(() => say('x'), {
    apiKeys,
    fetchedPictures: wayOf(asked),
    ...options,
    model: fields,
  });
  const post = async (path: string, body: object) => {
    const headers = { authorization: 'Bearer sk-alice' };
    const response = await toy.post(path, { model: 'toy', max_tokens: 5, ...body }, { headers });
    return { status: response.status, text: await response.text() };
  };
  const chat = (...urls: string[]) => {
    const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
    return post('/v1/chat/completions', { messages: [{ role: 'user', content }] });
  };
  const prompts = () => toy.engine.requests.map(({ promptTokens }) => [...promptTokens]);
  return { toy, post, chat, asked, read, prompts };
}

describe('addresses of pictures, where they are allowed', () => {
  it('are fetched for their key in every API that has them, in the order of the parts', async () => {
    const { post, chat, asked, prompts } = serverOf();
    expect((await chat(dataUrl(5), URL_OF_9, dataUrl(7))).status).toBe(200);
    const source = { type: 'url', url: URL_OF_9 };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    expect((await post('/v1/messages', { messages })).status).toBe(200);
    const content = [{ type: 'input_image', image_url: URL_OF_9 }];
    const input = [{ role: 'user', content }];
    expect((await post('/v1/responses', { input, max_tokens: undefined })).status).toBe(200);
    expect(asked.map(({ key, place }) => [key, place])).toEqual([
      ['alice', 'messages[0].content[1].image_url'],
      ['alice', 'messages[0].content[0]'],
      ['alice', 'input[0].content[0]'],
    ]);
    expect(prompts()[0]).toEqual([...bytesOf('u'), ...seen(5), ...seen(9), ...seen(7)]);
    expect(prompts().slice(1)).toEqual([
      [...bytesOf('u'), ...seen(9)],
      [...bytesOf('u'), ...seen(9)],
    ]);
  });

  it('count with the other files, and in the memory of their request', async () => {
    const { chat, read } = serverOf();
    const large = `data:;base64,${Buffer.alloc(6e6, 7).toString('base64')}`;
    const both = await chat(large, 'https://a.example/long');
    expect([both.status, both.text]).toEqual([400, expect.stringContaining('13000000 bytes together')]);
    expect(read).toEqual([]);
    const small = serverOf({ ledger: new MemoryLedger({ limit: 5e6 }) });
    const held = await small.chat('https://a.example/long');
    expect([held.status, held.text]).toEqual([400, expect.stringContaining('answer_too_large')]);
  });

  it('are not fetched for a key whose limits are used up', async () => {
    const limits = { requests_per_minute: 1 };
    const apiKeys = new ApiKeys([{ name: 'alice', key: 'sk-alice', weight: 1, limits }]);
    const { chat, asked } = serverOf({ apiKeys });
    expect((await chat(URL_OF_9)).status).toBe(200);
    const beyond = await chat(URL_OF_9);
    expect([beyond.status, beyond.text]).toEqual([429, expect.stringContaining('requests per minute')]);
    expect(asked).toHaveLength(1);
  });

  it('are an error of the request, or of too many at a time', async () => {
    const { chat } = serverOf();
    const gone = await chat('https://a.example/gone');
    expect([gone.status, gone.text]).toEqual([400, expect.stringContaining('invalid_image_url')]);
    expect((await chat('https://a.example/busy')).status).toBe(429);
  });

  it('are not fetched for a model that sees none, nor of other schemes', async () => {
    const { chat, asked } = serverOf();
    expect((await chat('ftp://a.example/9')).status).toBe(400);
    const blind = serverOf();
    blind.toy.models.add(toyModel(blind.toy.engine, { id: 'blind' }));
    const content = [{ type: 'image_url', image_url: URL_OF_9 }];
    const refused = await blind.post('/v1/chat/completions', {
      model: 'blind',
      messages: [{ role: 'user', content }],
    });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('no_vision')]);
    expect([asked, blind.asked]).toEqual([[], []]);
  });

  it('are fetched for a program by its own option alone', async () => {
    const { fields } = seeingToy();
    const asked: { key: string; name: string; place: string }[] = [];
    const content = [{ type: 'image_url', image_url: URL_OF_9 }];
    const ask = (more: object) =>
      askedRequest(toyModel(new FakeEngine(() => []), { ...fields, ...more }), {
        messages: [{ role: 'user', content }],
      });
    await expect(ask({})).rejects.toThrow('allowImageUrls');
    const { request } = await ask({ pictureSources: { fetched: wayOf(asked)('') } });
    expect(request.promptTokens).toEqual(Int32Array.from([...bytesOf('u'), ...seen(9)]));
    expect(asked).toHaveLength(1);
  });
});
