import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { answerAfterBody } from '../../../../src/server/sockets/late-body.js';

const MEGABYTE = 1_000_000;
/** Milliseconds that an answer waits here: never reached where the body comes. */
const LONG_MS = 60_000;

let server: Server;
afterEach(() => server.close());

/** A server that refuses whatever it is asked before it has read of it. */
async function refusing(restMs: number): Promise<number> {
  server = createServer((incoming, outgoing) => {
    answerAfterBody(incoming, outgoing, restMs);
    outgoing.writeHead(413).end('too long');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

describe('an answer on a connection that ends with it', () => {
  it('waits until the body has come', async () => {
    const port = await refusing(LONG_MS);
    for (let i = 0; i < 3; i++) {
      const sent = request({ port, method: 'POST', agent: false });
      sent.end(Buffer.alloc(12 * MEGABYTE));
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      expect(answer.statusCode).toBe(413);
      expect(await text(answer)).toBe('too long');
    }
  });

  it('does not wait longer than it may for a client that stops in the middle', async () => {
    const port = await refusing(20);
    const socket = connect(port);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\nabc');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 [\s\S]*too long/);
  });

  it('is dropped with the connection of a client that leaves', async () => {
    const port = await refusing(LONG_MS);
    const socket = connect(port);
    socket.write('POST / HTTP/1.0\r\nContent-Length: 100\r\n\r\nabc');
    const [, outgoing] = await once(server, 'request');
    socket.destroy();
    await once(outgoing, 'close');
  });
});

it('an answer on a connection that goes on does not wait, and what follows is answered', async () => {
  const port = await refusing(LONG_MS);
  const socket = connect(port);
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc');
  expect(String((await once(socket, 'data'))[0])).toContain(' 413 ');
  socket.write('defGET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(String((await once(socket, 'data'))[0])).toContain(' 413 ');
  socket.destroy();
});
