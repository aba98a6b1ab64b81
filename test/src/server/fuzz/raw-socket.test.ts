import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import { say, toyServer } from '../../support/toy-server.js';

const toy = toyServer(() => say('ok'), { eventStream: { stallLimitMs: 200 } });
let server: HttpServer;

beforeAll(async () => {
  server = await HttpServer.listen({ app: toy.app, state: toy.state, host: '127.0.0.1', port: 0 });
});
afterAll(() => server.close());

/** All that comes back for these bytes, until the server closes or this side has waited in vain for more. */
function exchange(bytes: string | Uint8Array, end = true, port = server.port): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes);
      if (end) socket.end();
    });
    socket.setEncoding('utf8').on('data', (data) => {
      text += data;
    });
    socket.on('error', () => {}).on('close', () => resolve(text));
  });
}

const statuses = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
const body = JSON.stringify({ prompt: 'x' });
const post = (headers: string, content: string) =>
  `POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${content}`;
const length = (text: string) => `Content-Length: ${text.length}`;

/** Requests that HTTP does not allow, or whose end two servers could see in two places. */
const REFUSED: Readonly<Record<string, string | Uint8Array>> = {
  'no HTTP at all': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello',
  'a version of its own': 'GET /health HTTP/9.9\r\nHost: h\r\n\r\n',
  'no host': 'GET /health HTTP/1.1\r\n\r\n',
  'an unknown method': 'BREW /health HTTP/1.1\r\nHost: h\r\n\r\n',
  'a null byte in a header': 'GET /health HTTP/1.1\r\nHost: h\r\nX-A: a\0b\r\n\r\n',
  'a header without a name': 'GET /health HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n',
  'a folded header': 'GET /health HTTP/1.1\r\nHost: h\r\nX-A : b\r\n\r\n',
  'headers of 100 KB': `GET /health HTTP/1.1\r\nHost: h\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`,
  'a path of 100 KB': `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: h\r\n\r\n`,
  'two lengths': post(`${length(body)}\r\nContent-Length: 3`, body),
  'a length and chunks': post(
    `${length(body)}\r\nTransfer-Encoding: chunked`,
    `0\r\n\r\nGET /live HTTP/1.1\r\nHost: h\r\n\r\n`,
  ),
  'a length that is negative': post('Content-Length: -1', body),
  'a length that is no number': post('Content-Length: 0x10', body),
  'a length beyond all numbers': post('Content-Length: 99999999999999999999999', body),
  'a chunk of a size that is none': post('Transfer-Encoding: chunked', 'zz\r\nabc\r\n0\r\n\r\n'),
  'a chunk longer than it says': post('Transfer-Encoding: chunked', '3\r\nabcdef\r\n0\r\n\r\n'),
  'a chunk size beyond all numbers': post('Transfer-Encoding: chunked', 'ffffffffffffffffff\r\nabc\r\n'),
  'a chunk size of 20 digits': post('Transfer-Encoding: chunked', 'ffffffffffffffffffff\r\nabc\r\n'),
  'two hosts': 'GET /health HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n',
  'an empty host': 'GET /health HTTP/1.1\r\nHost:\r\n\r\n',
  'a header on two lines': 'GET /health HTTP/1.1\r\nHost: h\r\nX-A: a\r\n b\r\n\r\n',
  'lines without carriage returns': 'GET /health HTTP/1.1\nHost: h\n\n',
  'a line that ends with a carriage return alone': 'GET /health HTTP/1.1\r\nHost: h\rX-A: b\r\n\r\n',
  'one length twice': post(`${length(body)}\r\n${length(body)}`, body),
  'too many headers': `GET /health HTTP/1.1\r\nHost: h\r\n${'X: 12345678\r\n'.repeat(5000)}\r\n`,
  'no version': 'GET /health\r\n\r\n',
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  'an address that is none': 'OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n',
};

/** Requests that HTTP allows and this server refuses, by status. The connection ends: further bytes have no known meaning. */
const NOT_HAD: Readonly<Record<string, readonly [string, number]>> = {
  'a tunnel': ['CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n', 405],
  'a tunnel to a path, with more behind it': ['CONNECT /live HTTP/1.1\r\nHost: h\r\n\r\nGET /live', 405],
  'an expectation': [post(`${length(body)}\r\nExpect: a-miracle`, body), 417],
  'an encoding that hides chunks': [post('Transfer-Encoding: xchunked', body), 415],
  'a body that is packed': [post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'), 415],
  // The rest of these requests never comes, and the client waits.
  'a chunk as long as a number can be': [
    post('Transfer-Encoding: chunked', 'ffffffffffffffff\r\nabc\r\n'),
    408,
  ],
  'a chunk longer than any body': [post('Transfer-Encoding: chunked', 'fffffffff\r\nabc\r\n'), 408],
  'half a body': [post('Content-Length: 50', body), 408],
  'no body': [post('Content-Length: 50', ''), 408],
};

describe('bytes that are no request', () => {
  it.each(Object.entries(REFUSED))('%s: one refusal, and the connection ends', async (_, bytes) => {
    const text = await exchange(bytes);
    // The rest of a body refused on its way must not be read as a request.
    const [status] = statuses(text);
    expect(statuses(text)).toHaveLength(1);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({
      error: { message: expect.stringMatching(/\w{3}/), type: 'invalid_request_error' },
    });
    expect(statuses(await exchange('GET /live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'))).toEqual([
      200,
    ]);
  });
});

describe('requests that this server has nothing for', () => {
  it.each(Object.entries(NOT_HAD))(
    '%s: one answer, though the client waits on, and the connection ends',
    async (_, [bytes, status]) => {
      const before = toy.engine.requests.length;
      const text = await exchange(bytes, false);
      expect(statuses(text)).toEqual([status]);
      expect(text).toMatch(/^connection: close\r$/im);
      const { error } = JSON.parse(text.slice(text.indexOf('{'))) as {
        error: { code: string; message: string };
      };
      expect(error).toMatchObject({
        code: expect.stringMatching(/^\w+$/),
        message: expect.stringMatching(/^.+\.$/),
      });
      expect(toy.engine.requests).toHaveLength(before);
    },
  );

  it('are no connections of another protocol: what is offered is left unheard, and the request answered', async () => {
    for (const protocol of ['websocket', 'h2c', 'tls/1.0', 'x'.repeat(1000)]) {
      const upgrade = `Upgrade: ${protocol}\r\nConnection: Upgrade, close\r\nSec-WebSocket-Version: 13`;
      const text = await exchange(`GET /live HTTP/1.1\r\nHost: h\r\n${upgrade}\r\n\r\n`, false);
      expect(statuses(text)).toEqual([200]);
    }
    // Not even for a page of elsewhere, which may open one without asking.
    const foreign = 'Origin: https://evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade, close';
    expect(statuses(await exchange(`GET / HTTP/1.1\r\nHost: h\r\n${foreign}\r\n\r\n`, false))).toEqual([403]);
  });

  it('have a method that no path has', async () => {
    for (const method of ['TRACE', 'PUT', 'PATCH', 'PROPFIND', 'M-SEARCH']) {
      const text = await exchange(`${method} /live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
      expect([method, statuses(text)]).toEqual([method, [405]]);
      expect(text).toContain('"error":{"message"');
    }
  });
});

describe('a server with all the connections that it takes', () => {
  it('says so to whom asks on a further one, still lives, and takes new ones when others have gone', async () => {
    const few = await HttpServer.listen({
      app: toy.app,
      state: toy.state,
      host: '127.0.0.1',
      port: 0,
      maxConnections: 2,
    });
    const idle = [connect(few.port, '127.0.0.1'), connect(few.port, '127.0.0.1')];
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    const get = (path: string) =>
      exchange(`GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`, false, few.port);
    await expect.poll(async () => statuses(await get('/health'))).toEqual([503]);
    const refused = await get('/v1/models');
    expect(refused).toMatch(/^retry-after: \d+\r$/im);
    expect(refused).toContain('"code":"too_many_connections"');
    expect(refused).toMatch(/^x-request-id: req-/im);
    expect(statuses(await get('/live'))).toEqual([200]);
    for (const socket of idle) socket.destroy();
    await expect.poll(async () => statuses(await get('/health'))).toEqual([200]);
    await few.close();
  });
});

describe('requests that are only unusual', () => {
  const close = 'Connection: close';

  it('may be of HTTP/1.0, which names no host', async () => {
    expect(statuses(await exchange('GET /live HTTP/1.0\r\n\r\n', false))).toEqual([200]);
  });

  it('may have a thousand headers, of which none is overlooked', async () => {
    const many = 'X:\r\n'.repeat(1500);
    const text = await exchange(
      `GET /live HTTP/1.1\r\n${many}Host: h\r\nX-Request-Id: last\r\n${close}\r\n\r\n`,
    );
    expect(statuses(text)).toEqual([200]);
    expect(text).toContain('x-request-id: last');
  });

  it('may wait to be told that the body is wanted', async () => {
    const text = await exchange(post(`${length(body)}\r\nExpect: 100-continue\r\n${close}`, body), false);
    expect(statuses(text)).toEqual([100, 200]);
  });

  it('takes a body in chunks of one byte, with extensions and trailers', async () => {
    const chunks = [...body].map((byte) => `1;x=y\r\n${byte}\r\n`).join('');
    const text = await exchange(
      post(`Transfer-Encoding: chunked\r\n${close}`, `${chunks}0\r\nX-T: 1\r\n\r\n`),
    );
    expect(statuses(text)).toEqual([200]);
  });

  it('answers pipelined requests in their order, a stream among them', async () => {
    const stream = JSON.stringify({ prompt: 'x', stream: true });
    const requests = [
      post(length(body), body),
      post(length(stream), stream),
      post(`${length(body)}\r\n${close}`, body),
    ];
    const text = await exchange(requests.join(''), false);
    expect(statuses(text)).toEqual([200, 200, 200]);
    expect(text.indexOf('[DONE]')).toBeGreaterThan(text.indexOf('"object":"text_completion"'));
    expect(text.lastIndexOf('HTTP/1.1 200')).toBeGreaterThan(text.indexOf('[DONE]'));
  });

  it('has an answer for paths of every kind', async () => {
    for (const path of [
      '/%',
      '/%00',
      '/../../etc/passwd',
      '//',
      '/v1/models/%E0%A4%A',
      '/v1/models/..%2f..%2f',
      '*',
      'http://other/live',
      '/?a=%',
      '/\xff',
    ]) {
      const text = await exchange(
        Buffer.from(`GET ${path} HTTP/1.1\r\nHost: h\r\n${close}\r\n\r\n`, 'latin1'),
      );
      for (const status of statuses(text)) expect([200, 400, 404], path).toContain(status);
    }
    for (const host of ['', 'a b', '[::1', 'h:99999', 'user@h', '<script>']) {
      const text = await exchange(`GET /live HTTP/1.1\r\nHost: ${host}\r\n${close}\r\n\r\n`);
      expect(
        statuses(text).every((status) => status < 500),
        host,
      ).toBe(true);
      if (statuses(text)[0] !== 200) expect(text, host).toContain('"error":{"message"');
    }
  });

  it('reads JSON whatever type it is said to be, and no encoding that it does not know', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'nonsense',
      '',
    ]) {
      const request = post(`${length(body)}\r\n${close}`, body).replace('application/json', type);
      expect(statuses(await exchange(request))).toEqual([200]);
    }
    const text = await exchange(post(`${length(body)}\r\nContent-Encoding: compress\r\n${close}`, body));
    expect(statuses(text)).toEqual([415]);
    expect(text).toContain('Content-Encoding');
    const plain = post(`${length(body)}\r\nContent-Encoding: gzip\r\n${close}`, body);
    const notGzip = await exchange(plain, false);
    expect(statuses(notGzip)).toEqual([400]);
  });
});
