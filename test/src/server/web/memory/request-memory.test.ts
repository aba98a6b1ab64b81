import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { heldMemoryLimit } from '../../../../../src/server/app/held-memory-limit.js';
import { HttpServer } from '../../../../../src/server/listening/http-server.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { JsonSize } from '../../../../../src/server/web/bodies/json-size.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { bodyMemory, largestBodyMemory } from '../../../../../src/server/web/memory/memory-estimates.js';
import { postJson } from '../../../../support/post-json.js';
import { RawRequest } from '../../../held/raw-client.js';
import { say, type ToyOptions, toyServer } from '../../../support/toy-server.js';

const MIB = 2 ** 20;
const servers: HttpServer[] = [];
const raw: RawRequest[] = [];

afterEach(async () => {
  for (const one of raw.splice(0)) one.leave();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serving(limit: number, options: ToyOptions = {}) {
  const ledger = new MemoryLedger({ limit, isShared: () => options.apiKeys?.isShared === true });
  const toy = toyServer(() => say('Paris'), { ledger, ...options });
  const server = await HttpServer.listen({ app: toy.app, state: toy.state, host: '127.0.0.1', port: 0 });
  servers.push(server);
  const post = (path: string, body: object | string, headers: Record<string, string> = {}) =>
    postJson(server.url + path, body, { headers });
  return { ledger, server, post, toy };
}

/** A body of `bytes` bytes that has come but for its end. */
function unfinished(server: HttpServer, bytes: number, headers: Record<string, string> = {}): RawRequest {
  const body = Buffer.alloc(bytes, ' ');
  const one = new RawRequest(server.port, 'POST', '/v1/completions', body, {
    sentAtOnce: bytes - 1000,
    headers,
  });
  raw.push(one);
  return one;
}

describe('bodies that come', () => {
  it('are refused before they are read where others hold the memory, and taken when these are gone', async () => {
    const { ledger, server, post } = await serving(12 * MIB);
    const others = [unfinished(server, 2 * MIB), unfinished(server, 2 * MIB)];
    await expect.poll(() => ledger.held).toBeGreaterThan(4 * MIB - 100_000);
    const long = JSON.stringify({ prompt: 'x', user: 'y'.repeat(1.9 * MIB) });
    const refused = await post('/v1/completions', long);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'memory_full' } });
    // It is known by its length; nothing of it has to be sent.
    const unsent = await new Promise<number>((resolve) => {
      const headers = { 'content-length': 2 * MIB };
      const outgoing = request(
        `${server.url}/v1/completions`,
        { method: 'POST', headers, agent: false },
        (incoming) => {
          resolve(incoming.statusCode!);
          outgoing.destroy();
        },
      );
      outgoing.on('error', () => {});
      outgoing.flushHeaders();
    });
    expect(unsent).toBe(429);
    // Small ones have room kept for them.
    expect((await post('/v1/completions', { prompt: 'x' })).status).toBe(200);
    for (const one of others) one.leave();
    await expect.poll(() => ledger.held).toBe(0);
    expect((await post('/v1/completions', long)).status).toBe(200);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('hold what has come of them, and not what they say will', async () => {
    const { ledger, server } = await serving(100 * MIB);
    const body = Buffer.alloc(8 * MIB, ' ');
    raw.push(new RawRequest(server.port, 'POST', '/v1/completions', body, { sentAtOnce: 100_000 }));
    await expect.poll(() => ledger.held).toBeGreaterThan(100_000);
    expect(ledger.held).toBeLessThan(2 * MIB);
  });

  it('of unknown length are refused as they grow', async () => {
    const { ledger, server } = await serving(3 * MIB);
    const chunked = (bytes: number) => {
      const body = Buffer.alloc(bytes, ' ');
      raw.push(new RawRequest(server.port, 'POST', '/v1/completions', body, { isChunked: true }));
      return raw.at(-1)!.status;
    };
    expect(await chunked(2 * MIB)).toBe(413);
    await expect.poll(() => ledger.held).toBe(0);
    const others = unfinished(server, 0.6 * MIB);
    await expect.poll(() => ledger.held).toBeGreaterThan(500_000);
    expect(await chunked(0.7 * MIB)).toBe(429);
    others.leave();
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('that would never fit are refused with 413, and the option that says so', async () => {
    const { post } = await serving(2 * MIB);
    const refused = await post('/v1/completions', { prompt: 'x'.repeat(MIB) });
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({
      error: { code: 'body_too_large', message: expect.stringContaining('--max-held-memory-bytes') },
    });
  });

  it('are counted by what they become, before they are parsed', async () => {
    const { post } = await serving(4 * MIB);
    const many = `{"prompt":"x","user":[${'{},'.repeat(30_000)}{}]}`;
    expect((await post('/v1/completions', many)).status).toBe(413);
    expect((await post('/v1/completions', many.slice(0, 20_000).replace(/,[^,]*$/, ']}'))).status).toBe(400);
  });

  it('of one key leave room for those of another', async () => {
    const keys = ['alice', 'bob'].map((name) => ({ name, key: `sk-${name}`, weight: 1 }));
    const { ledger, server, post } = await serving(16 * MIB, { apiKeys: new ApiKeys(keys) });
    const as = (name: string) => ({ authorization: `Bearer sk-${name}` });
    unfinished(server, 2 * MIB, as('alice'));
    await expect.poll(() => ledger.held).toBeGreaterThan(2 * MIB - 100_000);
    const long = JSON.stringify({ prompt: 'x', user: 'y'.repeat(1.7 * MIB) });
    expect((await post('/v1/completions', long, as('alice'))).status).toBe(429);
    expect((await post('/v1/completions', long, as('bob'))).status).toBe(200);
  });
});

describe('answers', () => {
  it('are refused where they may become more than there is memory', async () => {
    const { ledger, post } = await serving(4 * MIB);
    const refused = await post('/v1/completions', { prompt: 'x', n: 100, max_tokens: 200, logprobs: 5 });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: 'answer_too_large' } });
    expect((await post('/v1/completions', { prompt: 'x', n: 2, max_tokens: 200, logprobs: 5 })).status).toBe(
      200,
    );
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('of every kind give everything back, refusals and clients that leave too', async () => {
    const { ledger, server, post } = await serving(100 * MIB);
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const stream of [false, true]) {
      for (const [path, body] of [
        ['/v1/chat/completions', { messages, stream }],
        ['/v1/completions', { prompt: ['a', 'b'], n: 3, stream }],
        ['/v1/responses', { input: 'Hi', store: false, stream }],
        ['/tokenize', { prompt: 'Hi' }],
        ['/v1/completions', { prompt: 7 }],
        ['/nowhere', {}],
      ] as const) {
        await (await post(path, body)).text();
      }
    }
    await post('/v1/completions', 'no JSON');
    unfinished(server, MIB).leave();
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('that are stored count until they are deleted', async () => {
    const { ledger, server, post } = await serving(100 * MIB);
    const { id } = (await (await post('/v1/responses', { input: 'Hi' })).json()) as { id: string };
    await expect.poll(() => ledger.heldFor('request')).toBe(0);
    expect(ledger.heldFor('stored')).toBeGreaterThan(100);
    await fetch(`${server.url}/v1/responses/${id}`, { method: 'DELETE' });
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('of statistics hold a buffer for each reader, and are refused beyond', async () => {
    const { ledger, server } = await serving(MIB);
    const readers = Array.from({ length: 6 }, () => {
      const one = new RawRequest(server.port, 'GET', '/stats/stream', Buffer.alloc(0));
      raw.push(one);
      return one;
    });
    expect(await Promise.all(readers.map(({ status }) => status))).toEqual(readers.map(() => 200));
    const more = new RawRequest(server.port, 'GET', '/stats/stream', Buffer.alloc(0));
    raw.push(more);
    expect(await more.status).toBe(429);
    for (const reader of readers) reader.leave();
    await expect.poll(() => ledger.held).toBe(0);
  });
});

describe('the estimates', () => {
  it('are no less than what V8 makes of small values', () => {
    // Bytes of an item that is kept, as measured with Node.js 20.
    const measured = {
      '{}': 64,
      '[]': 40,
      '[1]': 64,
      '{"a":1}': 40,
      '{"a":1.5}': 56,
      '1.5': 8,
      '"text"': 32,
      '12': 8,
    };
    for (const [item, bytes] of Object.entries(measured)) {
      const text = Buffer.from(`[${Array.from({ length: 50_000 }, () => item).join()}]`);
      const size = new JsonSize();
      size.add(text);
      // Counted twice: for what the parser makes of it, and for what the schema makes of it.
      expect(bodyMemory(text.length, size), item).toBeGreaterThan(50_000 * 2 * bytes * 0.99);
    }
    const keys = Buffer.from(`{${Array.from({ length: 50_000 }, (_, i) => `"k${i}":1`).join()}}`);
    const size = new JsonSize();
    size.add(keys);
    expect(bodyMemory(keys.length, size)).toBeGreaterThan(50_000 * 2 * 92);
  });

  it('count what is no JSON without a bound of its own', () => {
    const size = new JsonSize();
    size.add(Buffer.alloc(MIB, ':'));
    expect(bodyMemory(MIB, size)).toBeLessThan(largestBodyMemory(MIB));
  });

  it('of the limit: a quarter of the memory that is left, half of the heap, and room for the largest body', () => {
    const GIB = 2 ** 30;
    const around = {
      availableBytes: 20 * GIB,
      kvCacheBytes: 4 * GIB,
      heapBytes: 4 * GIB,
      maxBodyBytes: 16 * MIB,
    };
    expect(heldMemoryLimit(around)).toBe(2 * GIB);
    expect(heldMemoryLimit({ ...around, heapBytes: 16 * GIB })).toBe(4 * GIB);
    const least = 64 * MIB + largestBodyMemory(16 * MIB);
    expect(heldMemoryLimit({ ...around, kvCacheBytes: 19.9 * GIB })).toBe(least);
    expect(heldMemoryLimit({ ...around, kvCacheBytes: 30 * GIB })).toBe(least);
    expect(least).toBeLessThan(GIB / 2);
  });
});
