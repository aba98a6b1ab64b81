import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { FakeModel, fakeConfig } from '../support/fake-models.js';
import { answer, asked, MAX_BYTES, SocketClient, scripted, socketServer } from './support/socket-server.js';

const PATH = '/v2/models/ints/infer';
const ints = new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
/** A short request with a long answer. */
const wide = new FakeModel(fakeConfig({ name: 'wide', type: 'TYPE_INT32', dims: [-1] }), () => [
  { name: 'OUTPUT0', datatype: 'INT32', shape: [50_000], data: new Uint8Array(200_000) },
]);
/** An answer that goes out in several frames. */
const LONG = Int32Array.from({ length: 100_000 }, (_, i) => i);
const long = new FakeModel(fakeConfig({ name: 'long', type: 'TYPE_INT32', dims: [-1] }), () => [
  { name: 'OUTPUT0', datatype: 'INT32', shape: [LONG.length], data: new Uint8Array(LONG.buffer) },
]);
const slow = scripted('slow');

let served: Awaited<ReturnType<typeof socketServer>>;
beforeAll(async () => {
  served = await socketServer([ints, wide, long, slow.model], { eventStream: { stallLimitMs: 300 } });
});
afterEach(async () => {
  await expect.poll(() => served.ledger.held).toBe(0);
});
afterAll(() => served.server.close());

/** A connection that has had its handshake, on which a test writes frames as it likes. */
async function rawSocket(path = PATH, { server } = served): Promise<Socket> {
  const connection = connect(server.port, '127.0.0.1');
  connection.on('error', () => {});
  connection.write(
    `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n',
  );
  const [head] = (await once(connection, 'data')) as [Buffer];
  expect(head.toString()).toContain('101 Switching Protocols');
  return connection;
}

const [TEXT, PING, PONG, FIRST_PART, CONTINUATION] = [0x81, 0x89, 0x8a, 0x01, 0x00];

/** A frame with a mask of zeros. */
function frame(first: number, payload: Uint8Array, announced = payload.length): Buffer {
  const head = Buffer.alloc(14);
  head[0] = first;
  head[1] = 0x80 | 127;
  head.writeBigUInt64BE(BigInt(announced), 2);
  if (announced >= 65_536) return Buffer.concat([head, payload]);
  if (announced < 126) return Buffer.concat([Buffer.from([first, 0x80 | announced, 0, 0, 0, 0]), payload]);
  return Buffer.concat([
    Buffer.from([first, 0x80 | 126, announced >> 8, announced & 255, 0, 0, 0, 0]),
    payload,
  ]);
}

/** The status with which a socket ends on which these frames are written. */
async function closedAt(frames: Uint8Array): Promise<number> {
  const client = await SocketClient.open(`${served.url}${PATH}`);
  // What no client of the library would send goes to the connection below it.
  (client.socket as unknown as { _socket: Socket })._socket.write(frames);
  return (await client.closed())[0];
}

/** The server still answers. */
async function answers(): Promise<void> {
  const client = await SocketClient.open(`${served.url}${PATH}`);
  client.send(asked('well'));
  await expect.poll(() => client.messages.length).toBe(1);
  expect(client.messages[0]).toMatchObject({ id: 'well', outputs: [{ data: [1, 2] }] });
  await client.close();
}

const closedFor = async (reason: string) =>
  Number(
    new RegExp(`websockets_closed_total\\{reason="${reason}"\\} (\\d+)`).exec(
      await served.metrics.text(),
    )?.[1] ?? 0,
  );

describe('a client of a WebSocket', () => {
  it('has 256 requests under way at most', async () => {
    const client = await SocketClient.open(`${served.url}/v2/models/slow/infer`);
    for (let i = 0; i < 300; i++) client.send(asked(String(i), [i]));
    await expect.poll(() => slow.taken.length).toBe(256);
    answer(slow.taken[0]!);
    await expect.poll(() => slow.taken.length).toBe(257);
    for (let i = 1; i < 300; i++) {
      await expect.poll(() => slow.taken.length).toBeGreaterThan(i);
      answer(slow.taken[i]!);
    }
    await expect.poll(() => client.messages.length).toBe(300);
    expect(client.messages.map((one) => (one as { id: string }).id)).toEqual(
      Array.from({ length: 300 }, (_, i) => String(i)),
    );
    await client.close();
  });

  it('that does not read its answers is not read, and then cut off', async () => {
    const connection = await rawSocket('/v2/models/wide/infer');
    connection.pause();
    const before = wide.requests.length;
    const one = frame(
      TEXT,
      Buffer.from(JSON.stringify(asked('w', [1], { parameters: { binary_data_output: true } }))),
    );
    for (let i = 0; i < 400; i++) connection.write(one);
    await expect.poll(() => closedFor('stalled'), { timeout: 20_000 }).toBe(1);
    // Each answer has 200 kB, and the system's buffers take some MB.
    expect(wide.requests.length - before).toBeLessThan(400);
    connection.destroy();
    await answers();
  });

  it('that only sends pings fills nothing', async () => {
    // It is not cut off for what it does not read.
    const patient = await socketServer([ints]);
    const connection = await rawSocket(PATH, patient);
    connection.pause();
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => frame(PING, Buffer.alloc(125))));
    for (let i = 0; i < 200; i++) connection.write(pings);
    await once(connection, 'drain');
    connection.end();
    let received = 0;
    connection.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    connection.resume();
    await once(connection, 'close');
    // All pongs would be 25 MB; the system's buffers take a part of them.
    expect(received).toBeLessThan(20_000_000);
    await patient.server.close();
  });

  it('holds memory for what is not whole, and is closed where there is none', async () => {
    const connection = await rawSocket();
    connection.write(frame(TEXT, Buffer.alloc(300_000, 32), 900_000));
    await expect.poll(() => served.ledger.held).toBeGreaterThan(300_000);
    connection.write(Buffer.alloc(600_000, 32));
    // All of it is blank, which is no JSON.
    await expect.poll(() => served.ledger.held).toBeLessThan(100_000);
    connection.destroy();

    const small = await socketServer([ints], { ledger: new MemoryLedger({ limit: 500_000 }) });
    const client = await SocketClient.open(`${small.url}${PATH}`);
    client.send('x'.repeat(600_000));
    expect((await client.closed())[0]).toBe(1013);
    await small.server.close();
  });

  it('is closed for messages that are shorter than any request, and for too many fragments', async () => {
    const empty = Buffer.concat(Array.from({ length: 20_000 }, () => frame(TEXT, Buffer.alloc(0))));
    expect(await closedAt(empty)).toBe(1008);
    const parts = Array.from({ length: 20_000 }, () => frame(CONTINUATION, Buffer.from(' ')));
    expect(await closedAt(Buffer.concat([frame(FIRST_PART, Buffer.from('{')), ...parts]))).toBe(1008);
    await expect.poll(() => closedFor('flood')).toBe(1);
    await expect.poll(() => closedFor('too_many_parts')).toBe(1);
    await answers();
  });

  it('is sent a long answer in fragments, whole', async () => {
    const client = await SocketClient.open(`${served.url}/v2/models/long/infer`);
    client.send(asked('text'));
    client.send(asked('bytes', [1], { parameters: { binary_data_output: true } }));
    await expect.poll(() => client.messages.length).toBe(2);
    const [text, bytes] = client.messages as [{ outputs: { data: number[] }[] }, Buffer];
    // As bytes: to compare each number by itself takes seconds.
    const { data } = text.outputs[0]!;
    expect(data).toHaveLength(LONG.length);
    expect(Buffer.from(Int32Array.from(data).buffer).equals(Buffer.from(LONG.buffer))).toBe(true);
    expect(bytes.subarray(4 + bytes.readUInt32BE(0)).equals(Buffer.from(LONG.buffer))).toBe(true);
    await client.close();
  });

  it('is cut off without a sign of life, and closed where a message takes too long', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const silent = await rawSocket();
      silent.resume();
      const lively = await SocketClient.open(`${served.url}${PATH}`);
      const pinged = once(lively.socket, 'ping');
      // The first ping; the answer to it is a sign of life, and anything else is.
      vi.advanceTimersByTime(30_000);
      await pinged;
      lively.send(asked('here'));
      await once(lively.socket, 'message');
      vi.advanceTimersByTime(30_000);
      await once(silent, 'close');
      expect(lively.socket.readyState).toBe(lively.socket.OPEN);
      await lively.close();

      const slow = await rawSocket();
      slow.write(frame(TEXT, Buffer.alloc(100_000), 200_000));
      await vi.waitFor(() => expect(served.ledger.held).toBeGreaterThan(100_000));
      const later = performance.now() + 300_001;
      vi.spyOn(performance, 'now').mockReturnValue(later);
      const told = once(slow, 'data') as Promise<[Buffer]>;
      vi.advanceTimersByTime(30_000);
      vi.restoreAllMocks();
      const [closing] = await told;
      expect([closing[0], closing.readUInt16BE(2)]).toEqual([0x88, 1008]);
      slow.destroy();
    } finally {
      vi.restoreAllMocks();
      vi.useRealTimers();
    }
    await expect.poll(() => closedFor('gone')).toBe(1);
    await expect.poll(() => closedFor('slow')).toBe(1);
  });

  it('has the most expensive messages refused as quickly as those of HTTP', async () => {
    const client = await SocketClient.open(`${served.url}${PATH}`);
    const dear = [
      '['.repeat(MAX_BYTES),
      `{"inputs":${'['.repeat(MAX_BYTES - 20)}`,
      `{"a":[${'{},'.repeat(300_000)}0]}`,
      JSON.stringify(asked('most', Array(400_000).fill(1))),
    ];
    for (const one of dear) client.send(one);
    await expect.poll(() => client.messages.length, { timeout: 20_000 }).toBe(dear.length);
    expect(client.messages.map((one) => (one as { code?: number }).code)).toEqual([400, 400, 400, undefined]);
    await client.close();
  });
});

describe('a server that drains', () => {
  it('lets requests end, refuses others, and closes sockets', async () => {
    const { model, taken } = scripted('slow');
    const ending = await socketServer([ints, model]);
    const idle = await SocketClient.open(`${ending.url}${PATH}`);
    const busy = await SocketClient.open(`${ending.url}/v2/models/slow/infer`);
    busy.send(asked('1'));
    await expect.poll(() => taken.length).toBe(1);
    const drained = ending.server.drain(10_000);
    expect(await idle.closed()).toEqual([1001, 'The server is shutting down.']);
    busy.send(asked('2'));
    await expect.poll(() => ending.metrics.text()).toContain('requests_refused_total{code="infer_503"} 1');
    answer(taken[0]!);
    expect(await busy.closed()).toEqual([1001, 'The server is shutting down.']);
    expect(busy.messages).toEqual([
      expect.objectContaining({ id: '1', outputs: [expect.objectContaining({ data: [1, 2] })] }),
      { id: '2', error: 'The server is shutting down and takes no new requests.', code: 503 },
    ]);
    expect(await drained).toBe(true);
    await ending.server.close();
  });

  it('cuts what is left at its end', async () => {
    const { model, taken } = scripted('slow');
    const ending = await socketServer([model]);
    const client = await SocketClient.open(`${ending.url}/v2/models/slow/infer`);
    client.send(asked('1'));
    await expect.poll(() => taken.length).toBe(1);
    await ending.server.close();
    expect((await client.closed())[0]).toBe(1001);
    expect(taken[0]!.request.signal!.aborted).toBe(true);
  });
});

describe('whatever a client sends', () => {
  const message = JSON.stringify(asked('f'));
  const spoilt = fc
    .record({ at: fc.nat(message.length - 1), text: fc.string({ maxLength: 5 }), cut: fc.nat(20) })
    .map(({ at, text, cut }) => message.slice(0, at) + text + message.slice(at + cut));
  const json = fc.json().map((text) => `{"id":"f","inputs":${text}}`);
  const binary = fc.uint8Array({ maxLength: 64 });

  it('as a message is answered', async () => {
    const client = await SocketClient.open(`${served.url}/models/infer`);
    await fc.assert(
      fc.asyncProperty(fc.oneof(spoilt, json, binary), async (one) => {
        const answered = once(client.socket, 'message');
        client.send(one);
        await answered;
        expect(client.messages.at(-1)).toMatchObject({ error: expect.any(String), code: 400 });
      }),
      { numRuns: 100 },
    );
    await client.close();
  });

  it('as frames leaves the server well', async () => {
    const part = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc
        .record({
          first: fc.integer({ min: 0, max: 255 }),
          payload: fc.uint8Array({ maxLength: 200 }),
          more: fc.constantFrom(0, 0, 0, 5, 70_000, MAX_BYTES, 2 ** 40),
        })
        .map(({ first, payload, more }) => frame(first, payload, payload.length + more)),
      fc.constantFrom(frame(TEXT, Buffer.from(message)), frame(PONG, randomBytes(9))),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 8 }), async (parts) => {
        const connection = await rawSocket();
        connection.resume();
        for (const one of parts) connection.write(one);
        connection.end();
        await once(connection, 'close');
      }),
      { numRuns: 60 },
    );
    await answers();
    expect(served.lines.filter(({ err }) => err !== undefined)).toEqual([]);
  });
});
