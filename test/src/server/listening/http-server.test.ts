import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import type { Script } from '../../support/fake-engine.js';
import { toyCodec } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';

const running: HttpServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.close();
});

async function start(script: Script, options: ToyOptions = {}) {
  const toy = toyServer(script, options);
  const { app, state, engine } = toy;
  const server = await HttpServer.listen({ app, state, host: '127.0.0.1', port: 0 });
  running.push(server);
  return { server, engine, state, url: server.url };
}

const body = (fields: object = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], ...fields }),
});
const endless: Script = () => [{ tokens: [65] }, { waitMs: 60_000 }, { finish: 'stop' }];
const silent: Script = () => [{ waitMs: 60_000 }, { finish: 'stop' }];

describe('every answer', () => {
  it('tells browsers not to guess what it is', async () => {
    const { url, server } = await start(() => say('x'));
    const paths = ['/health', '/nothing', '/v1/models', '/openapi.json', '/'];
    for (const path of paths) {
      const { headers } = await fetch(url + path);
      expect(headers.get('x-content-type-options'), path).toBe('nosniff');
    }
    const whole = await fetch(`${url}/v1/chat/completions`, body());
    const streamed = await fetch(`${url}/v1/chat/completions`, body({ stream: true }));
    for (const { headers } of [whole, streamed])
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    for (const { body: unread } of [whole, streamed]) await unread?.cancel();
    const head = 'GET / HTTP/1.1\r\nHost: a\r\n';
    for (const raw of ['nonsense\r\n\r\n', `${head}Host: b\r\n\r\n`, `${head}Expect: more\r\n\r\n`]) {
      const socket = connect(server.port, '127.0.0.1');
      socket.write(raw);
      expect(await text(socket)).toMatch(
        /^HTTP\/1.1 4\d\d .*\r\n(.*\r\n)*x-content-type-options: nosniff\r\n/i,
      );
    }
  });
});

describe('a client that goes away (trap 7)', () => {
  it('ends its streamed request', async () => {
    const { url, engine } = await start(endless);
    const leave = new AbortController();
    const response = await fetch(`${url}/v1/chat/completions`, {
      ...body({ stream: true }),
      signal: leave.signal,
    });
    const reader = response.body!.getReader();
    await reader.read();
    expect(engine.active).toBe(1);
    leave.abort();
    await expect.poll(() => engine.active).toBe(0);
    expect(engine.cancelled).toBe(1);
  });

  it('ends all n choices of it', async () => {
    const { url, engine } = await start(endless);
    const leave = new AbortController();
    const response = await fetch(`${url}/v1/completions`, {
      ...body(),
      body: JSON.stringify({ prompt: ['a', 'b'], n: 2, stream: true }),
      signal: leave.signal,
    });
    await response.body!.getReader().read();
    expect(engine.active).toBe(4);
    leave.abort();
    await expect.poll(() => engine.active).toBe(0);
  });

  it.each([false, true])('ends its request before the first token (stream: %s)', async (stream) => {
    const { url, engine } = await start(silent);
    const leave = new AbortController();
    const pending = fetch(`${url}/v1/chat/completions`, { ...body({ stream }), signal: leave.signal });
    await expect.poll(() => engine.active).toBe(1);
    leave.abort();
    await expect(pending).rejects.toThrow();
    await expect.poll(() => engine.active).toBe(0);
    expect(engine.cancelled).toBe(1);
  });
});

describe('a stream', () => {
  it('sends headers and a comment while a long prompt is read in silence (trap 8)', async () => {
    const { url } = await start(silent, { eventStream: { keepAliveMs: 10 } });
    const response = await fetch(`${url}/v1/chat/completions`, body({ stream: true }));
    expect(response.status).toBe(200);
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toContain(': keep-alive');
    await reader.cancel();
  });

  it('whose reader stops reading is cut off, and its request ends, without a word on the console', async () => {
    const printed = vi.spyOn(console, 'error');
    const flood: Script = () => [
      ...Array.from({ length: 1000 }, () => ({ tokens: [65] })),
      { finish: 'stop' },
    ];
    // Each token is much text, so that the buffers of both sockets fill soon.
    const long = 'x'.repeat(64 * 1024);
    const codec = { ...toyCodec, createDetokenizer: () => ({ push: () => long, flush: () => '' }) };
    const eventStream = { stallLimitMs: 50, highWaterMark: 1024 };
    const { url, engine } = await start(flood, { eventStream, model: { codec } });
    const request = httpRequest(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', () => {});
    request.end(body({ stream: true }).body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    response.pause();
    const cut = once(request, 'close');
    await expect.poll(() => engine.active).toBe(0);
    expect(engine.cancelled).toBe(1);
    response.resume();
    await cut;
    expect(printed).not.toHaveBeenCalled();
    printed.mockRestore();
  });
});

describe('a draining server', () => {
  it('says 503 on /health and to new requests, and lets the old ones end', async () => {
    const { server, engine, url } = await start(() => [{ tokens: [65] }, { waitMs: 2000 }, ...say('end')]);
    const response = await fetch(`${url}/v1/chat/completions`, body({ stream: true }));
    const drained = server.drain(10_000);
    expect((await fetch(`${url}/health`)).status).toBe(503);
    const refused = await fetch(`${url}/v1/chat/completions`, body());
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(await refused.json()).toMatchObject({ error: { code: 'server_shutting_down' } });
    expect((await fetch(`${url}/live`)).status).toBe(200);
    expect(await response.text()).toContain('[DONE]');
    expect(await drained).toBe(true);
    expect(engine.requests).toHaveLength(1);
  });

  it('gives up after its limit', async () => {
    const { server, engine, url } = await start(silent);
    const pending = fetch(`${url}/v1/chat/completions`, body()).catch(() => null);
    await expect.poll(() => engine.active).toBe(1);
    expect(await server.drain(10)).toBe(false);
    await server.close();
    running.splice(0);
    await pending;
    await expect.poll(() => engine.active).toBe(0);
  });
});

describe('listening', () => {
  it('says in one sentence that the port is in use', async () => {
    const { server } = await start(silent);
    const { app, state } = toyServer(silent);
    await expect(HttpServer.listen({ app, state, host: '127.0.0.1', port: server.port })).rejects.toThrow(
      /^Port \d+ on 127\.0\.0\.1 is in use; choose another with --port/,
    );
  });
});
