import { afterEach, describe, expect, it } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import { listenWhileLoading } from '../../../../src/server/listening/loading-answers.js';
import type { HttpSocket } from '../../../../src/server/sockets/http-socket.js';
import { say, toyServer } from '../../support/toy-server.js';

const open: Pick<HttpSocket, 'close'>[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function loading(models = ['a', 'b'], allowedHosts: readonly string[] | '*' = []) {
  const socket = await listenWhileLoading({ host: '127.0.0.1', port: 0, allowedHosts }, models);
  open.push(socket);
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(socket.url + path, init);
    return [response.status, await response.json(), response.headers.get('connection')];
  };
  return { socket, ask };
}

const reason = 'the models a, b are being loaded';
const message = `The server is not ready yet: ${reason}.`;

describe('a server that loads its models', () => {
  it('lives, and is not ready', async () => {
    const { ask } = await loading();
    const health = { status: 'loading', reason, restarts: 0, loading: ['a', 'b'], models: {} };
    expect(await ask('/health')).toEqual([503, health, 'close']);
    expect(await ask('/health?x=1')).toEqual([503, health, 'close']);
    expect(await ask('/ping/')).toEqual([503, health, 'close']);
    expect(await ask('/live')).toEqual([200, { status: 'live' }, 'close']);
    expect(await ask('/v2/health/live')).toEqual([200, { live: true }, 'close']);
    expect(await ask('/v2/health/ready')).toEqual([400, { error: `Server not ready: ${reason}` }, 'close']);
  });

  it('refuses everything else in the words of its API, and says when to ask again', async () => {
    const { ask, socket } = await loading();
    const post = { method: 'POST', body: JSON.stringify({ messages: [] }) };
    const error = { message, type: 'server_error', param: null, code: 'server_loading' };
    expect(await ask('/v1/chat/completions', post)).toEqual([503, { error }, 'close']);
    expect(await ask('/v1/models')).toEqual([503, { error }, 'close']);
    expect(await ask('/v2/models/a/infer', post)).toEqual([503, { error: message }, 'close']);
    expect(await ask('/api/chat', post)).toEqual([503, { error: message }, 'close']);
    expect(await ask('/v1/messages', post)).toMatchObject([
      503,
      { type: 'error', error: { type: 'overloaded_error', message } },
      'close',
    ]);
    const { headers } = await fetch(`${socket.url}/v1/models`, { headers: { 'x-request-id': 'goose' } });
    expect([headers.get('retry-after'), headers.get('x-request-id')]).toEqual(['2', 'goose']);
  });

  it('answers a client that sends a long body first', async () => {
    const { ask } = await loading();
    expect((await ask('/v1/completions', { method: 'POST', body: 'x'.repeat(2 ** 20) }))[0]).toBe(503);
  });

  it('is known by no other name than later', async () => {
    const { socket } = await loading(['a'], ['example.com']);
    const { request } = await import('node:http');
    const statusOf = (host: string) =>
      new Promise((resolve, reject) => {
        const { hostname, port } = new URL(socket.url);
        const sent = request({ hostname, port, path: '/health', headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on('error', reject).end();
      });
    expect(await statusOf('evil.example')).toBe(403);
    expect(await statusOf('example.com')).toBe(503);
  });

  it('answers on the same socket when they are loaded', async () => {
    const { socket, ask } = await loading();
    expect((await ask('/health'))[0]).toBe(503);
    const { app, state } = toyServer(() => say('x'));
    const server = await HttpServer.listen({ app, state, socket, host: 'unused', port: 1 });
    expect(server.url).toBe(socket.url);
    expect(await ask('/health')).toMatchObject([200, { status: 'ready' }, 'keep-alive']);
    expect(
      (
        await ask('/v1/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"prompt":"a"}',
        })
      )[0],
    ).toBe(200);
  });
});
