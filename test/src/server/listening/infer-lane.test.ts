import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpServer } from '../../../../src/server/listening/http-server.js';
import { InferLane } from '../../../../src/server/listening/infer-lane.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import type { ServerLog } from '../../../../src/server/web/server-log.js';
import { FakeModel, failing, fakeConfig } from '../kserve/support/fake-models.js';
import { fakePlatform } from '../kserve/support/fake-platform.js';

const ints = () => new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
const texts = () => new FakeModel(fakeConfig({ name: 'texts', type: 'TYPE_STRING', dims: [-1] }));
const broken = () => new FakeModel(fakeConfig({ name: 'broken', type: 'TYPE_INT32', dims: [-1] }), failing);
/** A short request with a long answer. */
const wide = () =>
  new FakeModel(fakeConfig({ name: 'wide', type: 'TYPE_INT32', dims: [-1] }), () => [
    { name: 'OUTPUT0', datatype: 'INT32', shape: [100_000], data: new Uint8Array(400_000).fill(1) },
  ]);
const MAX_BYTES = 2 ** 20;
const KEYS = new ApiKeys([
  { name: 'one', weight: 1, key: 'secret' },
  { name: 'two', weight: 1, key: 'other' },
]);

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

interface Lines extends ServerLog {
  lines: Record<string, unknown>[];
}

function noting(): Lines {
  const lines: Record<string, unknown>[] = [];
  const note = (fields: object) => void lines.push(fields as Record<string, unknown>);
  return { lines, debug: note, info: note, warn: note, error: note };
}

async function serve({ apiKeys = new ApiKeys([]), limit = 2 ** 30, stallLimitMs = 60_000 } = {}) {
  const ledger = new MemoryLedger({ limit });
  const accessLog = noting();
  const models = [ints(), texts(), broken(), wide()];
  const toy = fakePlatform(models, {
    apiKeys,
    ledger,
    accessLog,
    maxBodyBytes: MAX_BYTES,
    allowedHosts: ['skein.example'],
  });
  const log = noting();
  const { state, metrics, repository } = toy;
  const platform = { repository, serverId: 'triton', allowsUpload: false, sharedMemory: null };
  const shared = { state, metrics, log, accessLog, apiKeys, ledger, platform };
  const lane = new InferLane({
    ...shared,
    allowedHosts: ['skein.example'],
    maxBodyBytes: MAX_BYTES,
    requestTimeoutMs: null,
    stallLimitMs,
  });
  const taken: boolean[] = [];
  const take = lane.take.bind(lane);
  lane.take = (incoming, outgoing) => {
    const isTaken = take(incoming, outgoing);
    taken.push(isTaken);
    return isTaken;
  };
  const server = await HttpServer.listen({ app: toy.app, lane, state, host: '127.0.0.1', port: 0 });
  closing.push(() => server.close());
  return { server, taken, ledger, accessLog, log, state, metrics, models };
}

interface Sent {
  path?: string;
  body?: string | Uint8Array;
  headers?: Record<string, string>;
}

/** The answer as it came, without what differs from one time to the next. */
async function ask(server: HttpServer, { path = '/v2/models/ints/infer', body = GOOD, headers = {} }: Sent) {
  const request = httpRequest(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-length': Buffer.byteLength(body), 'x-request-id': 'mine', ...headers },
  });
  request.end(body);
  const [response] = await once(request, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  // The app allows web pages of this machine to read its answers; a program has no use for that.
  const {
    date: _,
    'access-control-expose-headers': __,
    'transfer-encoding': ___,
    'content-length': ____,
    vary: _____,
    ...told
  } = response.headers;
  // As a text, which is compared a thousand times faster than bytes.
  return { status: response.statusCode, headers: told, body: Buffer.concat(parts).toString('latin1') };
}

const input = (data: readonly unknown[], datatype = 'INT32') => ({
  name: 'INPUT0',
  shape: [data.length],
  datatype,
  data,
});
const json = (...inputs: unknown[]) => JSON.stringify({ id: 'a', inputs });
const GOOD = json(input([1, 2, 3]));
const header = JSON.stringify({
  inputs: [{ name: 'INPUT0', shape: [2], datatype: 'INT32', parameters: { binary_data_size: 8 } }],
  parameters: { binary_data_output: true },
});

const CASES: [name: string, sent: Sent][] = [
  ['JSON', {}],
  ['a version', { path: '/v2/models/ints/versions/1/infer' }],
  [
    'binary data',
    {
      body: Buffer.concat([Buffer.from(header), Buffer.from(Int32Array.of(4, 5).buffer)]),
      headers: { 'inference-header-content-length': String(header.length) },
    },
  ],
  ['texts', { path: '/v2/models/texts/infer', body: json(input(['ä', '€'], 'BYTES')) }],
  ['a compressed body', { body: gzipSync(GOOD), headers: { 'content-encoding': 'gzip' } }],
  ['an answer that is compressed', { path: '/v2/models/wide/infer', headers: { 'accept-encoding': 'gzip' } }],
  ['a long answer', { path: '/v2/models/wide/infer' }],
  ['a long body', { body: json(input(Array(100_000).fill(1))) }],
  ['no JSON', { body: '{"inputs": [' }],
  ['a shape that does not fit', { body: json({ ...input([1]), shape: [2] }) }],
  ['a model that fails', { path: '/v2/models/broken/infer' }],
  ['a model that is not there', { path: '/v2/models/nobody/infer' }],
  ['a version that is not there', { path: '/v2/models/ints/versions/7/infer' }],
  ['a header length that lies', { headers: { 'inference-header-content-length': '99999' } }],
  ['a coding that nobody knows', { headers: { 'content-encoding': 'br' } }],
  ['a host that is none of its names', { headers: { host: 'evil.example' } }],
  ['a host that is one of its names', { headers: { host: 'skein.example' } }],
];

describe('the short way of requests for tensors', () => {
  it.each(CASES)('answers as the app does: %s', async (_, sent) => {
    const { server, taken, ledger } = await serve();
    const short = await ask(server, sent);
    // A page of the server itself comes to the app.
    const long = await ask(server, {
      ...sent,
      headers: { ...sent.headers, 'sec-fetch-site': 'same-origin' },
    });
    expect(taken).toEqual([true, false]);
    expect(short).toEqual(long);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('compresses what its client reads so', async () => {
    const { server } = await serve();
    const { body, headers } = await ask(server, {
      path: '/v2/models/wide/infer',
      headers: { 'accept-encoding': 'gzip' },
    });
    expect(headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(Buffer.from(body, 'latin1')).toString())).toMatchObject({
      outputs: [{ shape: [100_000] }],
    });
  });

  it.each([
    ['another address', { path: '/v2/models/ints' }],
    ['letters that are escaped', { path: '/v2/models/%69nts/infer' }],
    ['a query', { path: '/v2/models/ints/infer?a=1' }],
    ['a web page', { headers: { origin: 'http://localhost:1' } }],
    ['a body that is too long', { body: json(input(Array(600_000).fill(1))) }],
  ])('is not for %s', async (_, sent: Sent) => {
    const { server, taken } = await serve();
    await ask(server, sent);
    expect(taken).toEqual([false]);
  });

  it.each([
    ['no key', {}, 401],
    ['a wrong key', { authorization: 'Bearer wrong' }, 401],
    ['a key', { authorization: 'Bearer secret' }, 200],
    ['a key of the other header', { 'x-api-key': 'other' }, 200],
  ])('asks for a key: %s', async (_, headers: Record<string, string>, status) => {
    const { server, taken, accessLog, models } = await serve({ apiKeys: KEYS });
    const short = await ask(server, { headers });
    expect(short.status).toBe(status);
    expect(short).toEqual(await ask(server, { headers: { ...headers, 'sec-fetch-site': 'same-origin' } }));
    expect(taken).toEqual([true, false]);
    const [ofLane, ofApp] = accessLog.lines.map(({ durationMs: _, ...line }) => line);
    expect(ofLane).toEqual(ofApp);
    // Sequences are a key's own.
    const owner = 'x-api-key' in headers ? 'two' : 'one';
    expect(models[0]!.requests.map((one) => one.owner)).toEqual(status === 200 ? [owner, owner] : []);
  });

  it('refuses while the server shuts down, and where there is no memory', async () => {
    const { server, state } = await serve();
    state.drain();
    expect(await ask(server, {})).toMatchObject({ status: 503, headers: { connection: 'close' } });
    const full = await serve({ limit: 1000 });
    expect((await ask(full.server, {})).status).toBe(413);
    expect(full.ledger.held).toBe(0);
  });

  it('counts requests and refusals', async () => {
    const { server, metrics } = await serve();
    await ask(server, {});
    await ask(server, { body: '{' });
    const text = await metrics.text();
    expect(text).toMatch(/http_requests_total\{handler="\/v2\/models\/\{model\}\/infer".*status="2xx".*\} 1/);
    expect(text).toMatch(/http_requests_total\{handler="\/v2\/models\/\{model\}\/infer".*status="4xx".*\} 1/);
    expect(text).toContain('code="infer_400"');
  });

  it('answers 408 where the body stops, and frees what it held', async () => {
    const { server, ledger } = await serve({ stallLimitMs: 30 });
    const socket = connect(server.port, '127.0.0.1');
    const head = `POST /v2/models/ints/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${GOOD.length}\r\n\r\n`;
    socket.write(head + GOOD.slice(0, 10));
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 408 /);
    socket.destroy();
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('frees what it held where the client leaves, and answers the others', async () => {
    const { server, ledger, accessLog, log } = await serve();
    const socket = connect(server.port, '127.0.0.1');
    const head = `POST /v2/models/ints/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${GOOD.length}\r\n\r\n`;
    socket.write(head + GOOD.slice(0, 10));
    await expect.poll(() => ledger.held).toBeGreaterThan(0);
    socket.destroy();
    await expect
      .poll(() => accessLog.lines.map(({ status, isWhole }) => [status, isWhole]))
      .toEqual([[499, false]]);
    expect([ledger.held, log.lines]).toEqual([0, []]);
    expect((await ask(server, {})).status).toBe(200);
  });

  it('hears where the client leaves while the model computes', async () => {
    const { server, ledger, models } = await serve();
    const [model] = models;
    const asked = new Promise<AbortSignal>((resolve) => {
      model!.infer = (request) => resolve(request.signal!);
    });
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      `POST /v2/models/ints/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`,
    );
    const signal = await asked;
    expect(ledger.held).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(() => signal.aborted).toBe(true);
  });
});
