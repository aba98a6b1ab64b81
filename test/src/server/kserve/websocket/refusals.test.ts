import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { FakeModel, fakeConfig } from '../support/fake-models.js';
import { asked, refusal, SocketClient, scripted, socketServer } from './support/socket-server.js';

const PATH = '/v2/models/ints/infer';
const KEY = { headers: { authorization: 'Bearer secret' } };
const ONE = { name: 'one', weight: 1, key: 'secret' };
const OTHER = { name: 'two', weight: 1, key: 'other' };
const ints = new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
const slow = scripted('slow');
const apiKeys = new ApiKeys([ONE, OTHER]);

let served: Awaited<ReturnType<typeof socketServer>>;
beforeAll(async () => {
  served = await socketServer([ints, slow.model], {
    apiKeys,
    allowedHosts: ['skein.example'],
    corsOrigins: ['https://page.example'],
  });
});
afterAll(() => served.server.close());
afterEach(() => apiKeys.replace([ONE, OTHER]));

const refused = (headers: Record<string, string>, path = PATH) =>
  refusal(`${served.url}${path}`, { headers: { ...KEY.headers, ...headers } });
const openWith = async (headers: Record<string, string> = {}, path = PATH) =>
  SocketClient.open(`${served.url}${path}`, { headers: { ...KEY.headers, ...headers } });

const HTTP_2 = {
  connection: 'Upgrade, HTTP2-Settings',
  upgrade: 'h2c',
  'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
};

/** Sends a request that offers an upgrade, and reads a plain answer. */
async function ask(url: string, method: string, path: string, body: string, offer: object = HTTP_2) {
  const sent = request(`${url}${path}`, {
    method,
    agent: new Agent(),
    headers: {
      ...KEY.headers,
      ...offer,
      'content-length': Buffer.byteLength(body),
    },
  });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return { status: response.statusCode, body: Buffer.concat(parts).toString() };
}

describe('a WebSocket is refused as other requests are', () => {
  it('without a key, and with a wrong one', async () => {
    for (const options of [{}, { headers: { 'x-api-key': 'wrong' } }]) {
      const { status, headers, body } = await refusal(`${served.url}${PATH}`, options);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toBe('Bearer');
      expect(headers.connection).toBe('close');
      expect(JSON.parse(body)).toEqual({ error: expect.stringContaining('API key') });
    }
    const client = await SocketClient.open(`${served.url}${PATH}`, { headers: { 'x-api-key': 'other' } });
    await client.close();
  });

  it('for web pages elsewhere, and hosts of other names', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { host: 'evil.example' },
    ]) {
      const { status, body } = await refused(headers as Record<string, string>);
      expect([status, Object.keys(JSON.parse(body))]).toEqual([403, ['error']]);
    }
    for (const headers of [
      { origin: served.server.url },
      { origin: 'https://page.example' },
      { host: 'skein.example' },
    ]) {
      const client = await openWith(headers as Record<string, string>);
      await client.close();
    }
  });

  it('for models, versions and paths that there are not', async () => {
    const statuses = [];
    for (const path of [
      '/v2/models/none/infer',
      '/v2/models/ints/versions/7/infer',
      '/v2/nothing',
      '/nothing',
    ]) {
      statuses.push((await refused({}, path)).status);
    }
    expect(statuses).toEqual([404, 404, 404, 404]);
    expect((await refused({}, '/v2/models/ints/generate')).status).toBe(405);
  });

  it('for what is no handshake', async () => {
    const plain = await fetch(`${served.server.url}${PATH}`, { headers: KEY.headers });
    expect(plain.status).toBe(426);
    expect(plain.headers.get('upgrade')).toBe('websocket');
    expect(((await plain.json()) as { error: string }).error).toContain('WebSockets');
    const handshake = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'MDEyMzQ1Njc4OWFiY2RlZg==',
    };
    const wrong = [{ 'sec-websocket-version': '8' }, { 'sec-websocket-key': 'short' }];
    const statuses = [];
    for (const one of wrong) {
      statuses.push((await ask(served.server.url, 'GET', PATH, '', { ...handshake, ...one })).status);
    }
    statuses.push((await ask(served.server.url, 'GET', PATH, 'body', handshake)).status);
    expect(statuses).toEqual([426, 400, 400]);
  });

  it('beyond the connections that there may be', async () => {
    const few = await socketServer([ints], { server: { maxConnections: 2 } });
    // A declined offer counts its connection once.
    await expect
      .poll(async () => (await ask(few.server.url, 'GET', PATH.replace('infer', 'ready'), '')).status)
      .toBe(200);
    const open = () => SocketClient.open(`${few.url}${PATH}`);
    const clients = [await open(), await open()];
    const { status, body } = await refusal(`${few.url}${PATH}`);
    expect([status, body]).toEqual([503, expect.stringContaining('its 2 connections (--max-connections)')]);
    await Promise.all(clients.map((client) => client.close()));
    await few.server.close();
  });

  it('where there is no memory for it', async () => {
    const full = await socketServer([ints], { ledger: new MemoryLedger({ limit: 2 ** 10 }) });
    const { status, body } = await refusal(`${full.url}${PATH}`);
    await full.server.close();
    expect([status, body]).toEqual([413, expect.stringContaining('--max-held-memory-bytes')]);
  });
});

describe('an open WebSocket', () => {
  it('ends with its key', async () => {
    const client = await openWith();
    client.send(asked('a'));
    await expect.poll(() => client.messages.length).toBe(1);
    apiKeys.replace([OTHER]);
    client.send(asked('b'));
    expect(await client.closed()).toEqual([1008, 'The API key is not valid any more.']);
    expect(client.messages.length).toBe(1);
  });

  it('asks for its key, with its weight', async () => {
    apiKeys.replace([{ ...ONE, weight: 3 }, OTHER]);
    const client = await openWith();
    client.send(asked('weighed'));
    await expect.poll(() => client.messages.length).toBe(1);
    const { owner, terms } = ints.requests.at(-1)!;
    expect([owner, terms!.caller, terms!.weight]).toEqual(['one', 'one', 3]);
    await client.close();
  });
});

describe('a request that offers another upgrade', () => {
  it('is answered as if it did not, with its body', async () => {
    const long = JSON.stringify(asked('long', Array(50_000).fill(1)));
    for (const body of [JSON.stringify(asked('short')), long]) {
      const answer = await ask(served.server.url, 'POST', PATH, body);
      expect([answer.status, JSON.parse(answer.body).id]).toEqual([200, JSON.parse(body).id]);
    }
  });

  it('is cut where it is pipelined behind one without an answer', async () => {
    const connection = connect(served.server.port, '127.0.0.1');
    const head = `host: localhost\r\nauthorization: Bearer secret\r\n`;
    const body = JSON.stringify(asked('1'));
    connection.write(
      `POST /v2/models/slow/infer HTTP/1.1\r\n${head}content-length: ${body.length}\r\n\r\n${body}` +
        `GET ${PATH} HTTP/1.1\r\n${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    );
    const received: Buffer[] = [];
    connection.on('data', (chunk) => received.push(chunk));
    await once(connection, 'close');
    expect(received).toEqual([]);
    await expect.poll(() => slow.taken.map(({ request: { signal } }) => signal!.aborted)).toEqual([true]);
  });
});
