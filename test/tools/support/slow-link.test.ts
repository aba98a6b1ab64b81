import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { SlowLink } from '../../../tools/support/slow-link.js';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A server that answers with what it gets, and a client that reaches it over a link. */
async function linked(delayMs: number): Promise<{ link: SlowLink; client: Socket }> {
  const server = createServer((socket) =>
    socket.on('data', (bytes) => socket.write(bytes)).on('error', () => {}),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const link = await SlowLink.open((server.address() as AddressInfo).port, delayMs);
  const client = connect({ port: link.port, host: '127.0.0.1' });
  ends.push(() => {
    client.destroy();
    link.close();
    server.close();
  });
  return { link, client };
}

describe('a link with delay', () => {
  it.each([0, 2])('of %i ms carries all bytes in order, both ways, and counts them', async (delayMs) => {
    const { link, client } = await linked(delayMs);
    const sent = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
    const got: Buffer[] = [];
    let length = 0;
    const all = new Promise<void>((resolve) => {
      client.on('data', (bytes) => {
        got.push(bytes);
        length += bytes.length;
        if (length === sent.length) resolve();
      });
    });
    for (let at = 0; at < sent.length; at += 7777) client.write(sent.subarray(at, at + 7777));
    await all;
    expect(Buffer.compare(Buffer.concat(got), sent)).toBe(0);
    expect(link.bytes).toBe(2 * sent.length);
  });

  it('ends at one end when it ends at the other', async () => {
    const { link, client } = await linked(1);
    client.on('error', () => {});
    client.write('x');
    await once(client, 'data');
    link.close();
    await once(client, 'close');
  });
});
