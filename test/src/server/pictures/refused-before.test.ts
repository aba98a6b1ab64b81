import { describe, expect, it } from 'vitest';
import { type ApiKey, ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { base64Of, dataUrl, seeingToy } from '../../support/fake-sight.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';

const CHAT = '/v1/chat/completions';
const KEYS: readonly ApiKey[] = [
  { name: 'alice', key: 'sk-alice', weight: 1, limits: { tokens_per_minute: 20 } },
];
const headers = { authorization: 'Bearer sk-alice' };

/** A body whose prompt has 3 tokens, 2 of them of a picture. */
const bodyOf = (fields: object) => ({
  max_tokens: 4,
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: dataUrl(5) } }] }],
  ...fields,
});

function serverOf(options: ToyOptions = {}, bytes?: number) {
  const seeing = seeingToy(undefined, bytes);
  const toy = toyServer(() => say('x'), { ...options, model: { ...seeing.fields, ...options.model } });
  const post = async (path: string, body: object, init: RequestInit = {}) => {
    const response = await toy.post(path, body, init);
    return { status: response.status, text: await response.text() };
  };
  return { ...seeing, toy, post };
}

describe('a request with pictures is refused before they are decoded', () => {
  it('by the limits of its key, whose tokens those of pictures are', async () => {
    const { post, decoded } = serverOf({ apiKeys: new ApiKeys(KEYS) });
    expect((await post(CHAT, bodyOf({ max_tokens: 17 }), { headers })).status).toBe(200);
    expect(decoded).toHaveLength(1);
    // Of 20 tokens 4 were used.
    const beyond = await post(CHAT, bodyOf({ max_tokens: 14 }), { headers });
    expect(beyond.status).toBe(429);
    expect(beyond.text).toContain('16 are left, and this request needs 17');
    const ollama = { model: 'toy', prompt: '', images: [base64Of(5)], options: { num_predict: 14 } };
    expect((await post('/api/generate', ollama, { headers })).status).toBe(429);
    const source = { type: 'base64', media_type: 'image/png', data: base64Of(5) };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    const anthropic = { model: 'toy', max_tokens: 14, messages };
    expect((await post('/v1/messages', anthropic, { headers })).status).toBe(429);
    expect(decoded).toHaveLength(1);
    expect((await post(CHAT, bodyOf({ max_tokens: 13 }), { headers })).status).toBe(200);
  });

  it('by the queue, by the length of the context, and by the memory that they would take', async () => {
    const full = serverOf({ maxActive: 0 });
    const queued = await full.post(CHAT, bodyOf({}));
    expect([queued.status, JSON.parse(queued.text).error.code]).toEqual([429, 'queue_full']);
    const short = serverOf({ model: { maxInputLen: 2 } });
    const long = await short.post(CHAT, bodyOf({}));
    expect([long.status, JSON.parse(long.text).error.code]).toEqual([400, 'context_length_exceeded']);
    const small = serverOf({ ledger: new MemoryLedger({ limit: 1e6 }) }, 1e6);
    const held = await small.post(CHAT, bodyOf({}));
    expect([held.status, JSON.parse(held.text).error.code]).toEqual([400, 'answer_too_large']);
    for (const { decoded } of [full, short, small]) expect(decoded).toEqual([]);
  });

  it('and none is decoded where its prompt is only counted or shown', async () => {
    const { post, decoded, read } = serverOf();
    expect(JSON.parse((await post('/tokenize', bodyOf({}))).text)).toMatchObject({ count: 3 });
    expect(read).toHaveLength(1);
    expect(decoded).toEqual([]);
  });
});
