import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type FetcherOptions,
  PictureFetcher,
} from '../../../../../src/generation/pictures/fetch/picture-fetcher.js';
import type { ResolveHost } from '../../../../../src/generation/pictures/fetch/resolve-host.js';

const fixture = (name: string) =>
  readFileSync(new URL(`../../../../fixtures/tls/${name}`, import.meta.url), 'utf8');
const PUBLIC = '93.184.216.34';
const OTHER = '93.184.216.35';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
let handler: Handler = () => {};
const requests: IncomingMessage[] = [];
const server = createServer(
  { cert: fixture('localhost.cert.pem'), key: fixture('localhost.key.pem') },
  (request, response) => {
    requests.push(request);
    handler(request, response);
  },
);
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  server.closeAllConnections();
  requests.length = 0;
});
afterAll(() => server.close());

/** A fetcher for which the Internet is the server above, and which notes the addresses that it connects to. */
function fetcherOf({
  resolve = async () => [PUBLIC],
  ca = true,
  ...options
}: Partial<FetcherOptions> & { resolve?: ResolveHost; ca?: boolean } = {}) {
  const dialled: string[] = [];
  const sockets: Socket[] = [];
  const dial = (address: string) => {
    dialled.push(address);
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    return socket;
  };
  const areClosed = () => expect.poll(() => sockets.every((socket) => socket.closed)).toBe(true);
  const network = { resolve, dial, ca: ca ? fixture('localhost.cert.pem') : undefined };
  const fetcher = new PictureFetcher({ network, ...options });
  const taken: number[] = [];
  const fetch = (
    urls: readonly string[],
    { key = '', signal }: { key?: string; signal?: AbortSignal } = {},
  ) =>
    fetcher.of(key)(
      urls.map((name, i) => ({ name, place: `messages[${i}]` })),
      { take: (bytes) => void taken.push(bytes), signal },
    );
  return { fetcher, fetch, dialled, taken, areClosed };
}

const send =
  (bytes: Uint8Array, headers: Record<string, string> = {}): Handler =>
  (_, response) => {
    response.writeHead(200, headers);
    response.end(bytes);
  };

describe('pictures at addresses', () => {
  it('come in their order, with the name of their host and nothing of the client, by whatever type', async () => {
    handler = (request, response) =>
      send(Buffer.from(request.url!), { 'content-type': 'text/html' })(request, response);
    const { fetch, dialled, taken, fetcher } = fetcherOf();
    const files = await fetch(['https://localhost/a?b=c#d', 'https://localhost:443/e']);
    expect(files.map(String)).toEqual(['/a?b=c', '/e']);
    expect(dialled).toEqual([PUBLIC, PUBLIC]);
    expect(taken.sort()).toEqual([2, 6]);
    const [{ headers }] = requests as [IncomingMessage];
    expect(headers).toMatchObject({
      host: 'localhost',
      'accept-encoding': 'identity',
      'user-agent': 'skein',
    });
    expect(Object.keys(headers).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ]);
    expect(fetcher.running).toBe(0);
  });

  it('are read from the address that was looked at, whatever the name says later', async () => {
    handler = send(Buffer.from('x'));
    let asked = 0;
    const resolve = async () => (++asked === 1 ? [PUBLIC] : ['127.0.0.1']);
    const rebinding = fetcherOf({ resolve });
    await rebinding.fetch(['https://localhost/a']);
    expect([asked, rebinding.dialled]).toEqual([1, [PUBLIC]]);
    await expect(rebinding.fetch(['https://localhost/a'])).rejects.toThrow('no public address');
    expect([asked, rebinding.dialled]).toEqual([2, [PUBLIC]]);
    const several = fetcherOf({ resolve: async () => [PUBLIC, '10.0.0.1'] });
    await expect(several.fetch(['https://localhost/a'])).rejects.toThrow('no public address');
    const all = fetcherOf({ resolve: async () => [OTHER, PUBLIC] });
    await all.fetch(['https://localhost/a']);
    expect([several.dialled, all.dialled]).toEqual([[], [OTHER]]);
  });

  it.each([
    ['http://localhost/a', 'is no https: address'],
    ['https://localhost:8443/a', 'has the port 8443'],
    ['https://user@localhost/a', 'has a user or a password'],
    ['https://:pass@localhost/a', 'has a user or a password'],
    ['https://', 'is no address'],
    [`https://localhost/${'a'.repeat(4096)}`, 'an address may have 4096'],
    ['https://127.0.0.1/a', 'no public address'],
    ['https://2130706433/a', 'no public address'],
    ['https://0x7f.1/a', 'no public address'],
    ['https://[::1]/a', 'no public address'],
    ['https://[::ffff:8.8.8.8]/a', 'no public address'],
    ['https://[fd00::1]/a', 'no public address'],
  ])('are refused before anything is connected to: %s', async (url, sentence) => {
    const { fetch, dialled } = fetcherOf();
    const failed = fetch([url]);
    await expect(failed).rejects.toMatchObject({ param: 'messages[0]', apiCode: 'invalid_image_url' });
    await expect(failed).rejects.toThrow(sentence);
    expect(dialled).toEqual([]);
  });

  it('are refused where their name has no address, and nobody is told which one it has', async () => {
    const none = fetcherOf({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
    await expect(none.fetch(['https://localhost/a'])).rejects.toThrow(
      "'messages[0]' has a host whose name is not found.",
    );
    const inner = fetcherOf({ resolve: async () => ['10.1.2.3'] });
    await expect(inner.fetch(['https://localhost/a'])).rejects.toThrow(
      /^'messages\[0\]' has a host with no public address\.$/,
    );
  });

  it.each<[string, Handler, string | RegExp]>([
    [
      'leads elsewhere',
      (_, response) => response.writeHead(302, { location: 'https://localhost/b' }).end(),
      'none is followed',
    ],
    ['is not there', (_, response) => response.writeHead(404).end(), 'the status 404'],
    ['is compressed', send(gzipSync(Buffer.alloc(1e6)), { 'content-encoding': 'gzip' }), 'the encoding gzip'],
    [
      'says that it is too large',
      (_, response) => response.writeHead(200, { 'content-length': '12000001' }).flushHeaders(),
      '12000001 bytes',
    ],
    [
      'breaks off',
      (_, response) => {
        response.writeHead(200, { 'content-length': '9' });
        response.write('x', () => response.destroy());
      },
      /cannot be read from its server \(ECONNRESET\)/,
    ],
    [
      'has no HTTP',
      (request) => void request.socket.end('nothing\r\n'),
      /cannot be read from its server \(HPE_/,
    ],
    [
      'goes over to another protocol',
      (request) => {
        const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';
        request.socket.write(head);
      },
      /cannot be read from its server|was not answered to the end/,
    ],
    [
      'has headers without end',
      (request) => void request.socket.write(`HTTP/1.1 200 OK\r\na: ${'b'.repeat(1e6)}`),
      /HPE_HEADER_OVERFLOW/,
    ],
  ])('are refused whose answer %s', async (_, answer, sentence) => {
    handler = answer;
    const { fetch, dialled, fetcher } = fetcherOf();
    await expect(fetch(['https://localhost/a'])).rejects.toThrow(sentence);
    expect([dialled, requests.length, fetcher.running]).toEqual([[PUBLIC], 1, 0]);
  });

  it('are refused from a server whose certificate nobody vouches for, or that is for another name', async () => {
    handler = send(Buffer.from('x'));
    await expect(fetcherOf({ ca: false }).fetch(['https://localhost/a'])).rejects.toThrow(
      /\(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    );
    await expect(fetcherOf().fetch(['https://a.example/a'])).rejects.toThrow(
      /\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    );
    expect(requests).toEqual([]);
  });

  it('end with what counts their bytes, though the body has no end', async () => {
    handler = (_, response) => {
      const more = () => {
        while (response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', more);
      more();
    };
    const { fetcher, areClosed } = fetcherOf();
    let bytes = 0;
    const take = (count: number) => {
      bytes += count;
      if (bytes > 1e6) throw new RangeError('enough');
    };
    const named = [{ name: 'https://localhost/a', place: 'a' }];
    await expect(fetcher.of('')(named, { take, signal: undefined })).rejects.toThrow('enough');
    expect(bytes).toBeLessThan(1.2e6);
    await areClosed();
  });

  it('end when their time is over, or with the client, however slowly they come', async () => {
    handler = (_, response) => {
      response.writeHead(200);
      response.write('x');
    };
    const slow = fetcherOf({ timeLimitMs: 50 });
    await expect(slow.fetch(['https://localhost/a'])).rejects.toThrow(
      "'messages[0]' was not read within 0.05 s.",
    );
    await slow.areClosed();
    // So it is where the name's server, or the picture's, says nothing.
    const silent = fetcherOf({
      timeLimitMs: 50,
      resolve: (_, signal) =>
        new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    await expect(silent.fetch(['https://localhost/a'])).rejects.toThrow('was not read within');
    const gone = new AbortController();
    const before = requests.length;
    const client = fetcherOf();
    const asked = client.fetch(['https://localhost/a'], { signal: gone.signal });
    await expect.poll(() => requests.length).toBeGreaterThan(before);
    gone.abort(new Error('the client has left'));
    await expect(asked).rejects.toThrow('the client has left');
    await client.areClosed();
    expect([slow, silent, client].map(({ fetcher }) => fetcher.running)).toEqual([0, 0, 0]);
  });

  it('are a bounded number at a time, of which one of several keys has half', async () => {
    const waiting: ServerResponse[] = [];
    handler = (_, response) => void waiting.push(response);
    const { fetch, fetcher } = fetcherOf({ isShared: () => true });
    const sixteen = Array.from({ length: 16 }, (_, i) => `https://localhost/${i}`);
    const begun = [fetch(sixteen, { key: 'a' }), fetch(sixteen, { key: 'a' }), fetch(sixteen, { key: 'b' })];
    await expect(fetch(['https://localhost/a'], { key: 'a' })).rejects.toMatchObject({
      code: 'SKEIN_PICTURES_BUSY',
    });
    begun.push(fetch(sixteen, { key: 'b' }));
    await expect(fetch(['https://localhost/a'], { key: 'c' })).rejects.toThrow(
      'Too many pictures are fetched',
    );
    expect(fetcher.running).toBe(64);
    await expect.poll(() => waiting.length).toBe(64);
    for (const response of waiting) response.end('x');
    await Promise.all(begun);
    expect(fetcher.running).toBe(0);
  });
});
