import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpStreamConnection } from '../../../../src/server/web/stream-connection.js';

let close: () => void = () => {};
afterEach(() => close());

/** Bytes of an answer that a bare socket reads, without the headers. */
async function rawBody(version: string, answer: (outgoing: ServerResponse) => void): Promise<string> {
  const server = createServer((_, outgoing) => {
    outgoing.writeHead(200, { connection: 'close' });
    outgoing.flushHeaders();
    answer(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => server.close();
  return new Promise((resolve) => {
    let text = '';
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.setEncoding('utf8').write(`GET / HTTP/${version}\r\nHost: here\r\n\r\n`);
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('close', () => resolve(text.slice(text.indexOf('\r\n\r\n') + 4)));
  });
}

describe('HttpStreamConnection', () => {
  it('sends what is written in one turn as one chunk, counted in bytes, and the end behind it', async () => {
    const body = await rawBody('1.1', (outgoing) => {
      const connection = new HttpStreamConnection(outgoing);
      for (const text of ['data: a\n\n', 'data: é\n\n', 'data: 🦢\n\n'])
        expect(connection.write(text)).toBe(true);
      setImmediate(() => {
        connection.write('data: [DONE]\n\n');
        connection.flush();
        outgoing.end();
      });
    });
    expect(body).toBe('1f\r\ndata: a\n\ndata: é\n\ndata: 🦢\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n');
  });

  it('sends the text as it is to a client of HTTP/1.0', async () => {
    const body = await rawBody('1.0', (outgoing) => {
      const connection = new HttpStreamConnection(outgoing);
      connection.write('data: a\n\n');
      setImmediate(() => outgoing.end());
    });
    expect(body).toBe('data: a\n\n');
  });

  it('says when the reader is behind, and when it is not any more', async () => {
    const sizes: number[] = [];
    const body = await rawBody('1.1', (outgoing) => {
      const connection = new HttpStreamConnection(outgoing);
      const big = 'x'.repeat(2 ** 22);
      // The socket takes what its buffers hold; a second piece finds it full.
      connection.write(big);
      connection.flush();
      expect(connection.write(big)).toBe(false);
      connection.once('drain', () => {
        sizes.push(big.length);
        outgoing.end();
      });
    });
    expect(sizes).toEqual([2 ** 22]);
    expect(body.length).toBeGreaterThan(2 ** 23);
  });

  it('writes nothing to a connection that is gone', async () => {
    const body = await rawBody('1.1', (outgoing) => {
      const connection = new HttpStreamConnection(outgoing);
      connection.write('late');
      connection.destroy();
      connection.flush();
      expect(connection.destroyed).toBe(true);
    });
    expect(body).toBe('');
  });
});
