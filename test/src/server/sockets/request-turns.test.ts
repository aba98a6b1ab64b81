import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import { MAX_DROPPED, MAX_WAITING } from '../../../../src/server/sockets/request-turns.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import type { Script } from '../../support/fake-engine.js';
import { say, toyServer } from '../../support/toy-server.js';

const running: HttpServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of running.splice(0)) await server.close();
});

async function start(script: Script) {
  const ledger = new MemoryLedger();
  const { app, state, engine } = toyServer(script, { ledger });
  const server = await HttpServer.listen({ app, state, host: '127.0.0.1', port: 0 });
  running.push(server);
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  let text = '';
  socket.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  return { server, engine, ledger, socket, text: () => text };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

function post(prompt: string): string {
  const body = JSON.stringify({ prompt, max_tokens: 4 });
  return `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const endless: Script = () => [{ tokens: [65] }, { waitMs: 600_000 }, { finish: 'stop' }];

describe('requests that come on one connection before others are answered', () => {
  it('are answered in their order', async () => {
    const { socket, text } = await start(() => say('ok'));
    socket.write([post('a'), get('/live'), post('b'), get('/nothing'), get('/v1/models')].join(''));
    await expect
      .poll(() => Array.from(text().matchAll(/HTTP\/1.1 (\d+)/g), ([, status]) => status))
      .toEqual(['200', '200', '200', '404', '200']);
  });

  it('are not begun before it is their turn', async () => {
    const { socket, engine } = await start(endless);
    socket.write(post('a').repeat(10));
    await expect.poll(() => engine.active).toBe(1);
    // On another connection the server continues: whatever was sent there has been read by then.
    expect(await (await fetch(`${running[0]!.url}/live`)).text()).not.toBe('');
    expect(engine.active).toBe(1);
  });

  it('leave nothing behind where the connection ends', async () => {
    const { server, socket, engine, ledger } = await start(endless);
    socket.write(post('a') + get('/stats/stream').repeat(20) + post('b').repeat(20));
    await expect.poll(() => engine.active).toBe(1);
    expect(ledger.held).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(() => [engine.active, ledger.held]).toEqual([0, 0]);
    expect(await server.drain(600_000)).toBe(true);
  });

  it('are answered as far as they may wait, and the connection ends behind the last of them, where there are too many', async () => {
    const { server, socket, text } = await start(() => say('ok'));
    const closed = once(socket, 'close');
    socket.write(post('a') + get('/live').repeat(MAX_WAITING + 100));
    await closed;
    const answers = text().split('HTTP/1.1 ').slice(1);
    expect(answers).toHaveLength(1 + MAX_WAITING);
    expect(answers.every((answer) => answer.startsWith('200'))).toBe(true);
    expect(answers.map((answer) => /connection: close/i.test(answer)).indexOf(true)).toBe(MAX_WAITING);
    expect(await server.drain(600_000)).toBe(true);
  });

  it('end the connection, and the one in work with it, where they do not end', async () => {
    const { server, socket, engine } = await start(endless);
    const closed = once(socket, 'close');
    socket.write(post('a') + get('/live').repeat(MAX_WAITING + 10));
    await expect.poll(() => engine.active).toBe(1);
    expect(socket.closed).toBe(false);
    socket.write(get('/live').repeat(MAX_DROPPED));
    await closed;
    await expect.poll(() => engine.active).toBe(0);
    expect(await server.drain(600_000)).toBe(true);
  });

  it('are waited for when the server drains', async () => {
    const { server, socket, text } = await start(() => say('ok'));
    socket.write(post('a') + get('/live').repeat(3));
    await expect.poll(() => text()).toContain('HTTP/1.1');
    expect(await server.drain(600_000)).toBe(true);
  });
});
