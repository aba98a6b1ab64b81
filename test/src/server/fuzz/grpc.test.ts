import { connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import * as fc from 'fast-check';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { methodTypes } from '../../../../src/server/grpc/schema/message-types.js';
import { SharedRegions } from '../../../../src/serving/shared-memory/shared-regions.js';
import { answered, type GrpcPlatform, grpcPlatform } from '../grpc/support/grpc-platform.js';
import { framed, inferMessage, openCall, rawStream } from '../grpc/support/raw-stream.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';

const METHODS = methodTypes()
  .filter(({ path, isStream }) => path.includes('GRPCInferenceService') && !isStream)
  .map(({ name }) => name);
const NUM_RUNS = 150;

const models = () => [
  new FakeModel(fakeConfig({ name: 'same', type: 'TYPE_FP32', dims: [-1] })),
  new FakeModel(fakeConfig({ name: 'texts', type: 'TYPE_STRING', dims: [-1], batch: 4 })),
];

let platform: GrpcPlatform;

async function serve(options: Parameters<typeof grpcPlatform>[1] = {}): Promise<GrpcPlatform> {
  const sharedMemory = new SharedRegions({ maxRegions: 4, maxRegionBytes: 1000, maxBytes: 1000 });
  onTestFinished(() => sharedMemory.unregister());
  platform = await grpcPlatform(models(), {
    sharedMemory,
    allowsUpload: true,
    stallLimitMs: 60_000,
    ...options,
  });
  return platform;
}

/** Whatever was sent: nothing of it is held, nothing failed that should not, and others are answered. */
afterEach(async () => {
  const { client, connect: another, ledger, log } = platform;
  void client;
  expect(log.filter(({ level }) => level === 'error')).toEqual([]);
  const other = another();
  expect(await answered(other.call('ServerLive', {}))).toEqual({ live: true });
  const tensor = { name: 'INPUT0', datatype: 'FP32', shape: [1] };
  const request = { model_name: 'same', inputs: [tensor], raw_input_contents: [Buffer.alloc(4)] };
  expect(await answered(other.call('ModelInfer', request))).toMatchObject({ model_name: 'same' });
  await expect.poll(() => ledger.held).toBe(0);
});

/** Fields of a request that are right now and then. */
const name = fc.constantFrom(
  'same',
  'texts',
  'INPUT0',
  'OUTPUT0',
  '',
  '__proto__',
  'constructor',
  'x'.repeat(2000),
  '\0',
  '💥',
);
const bytes = fc.uint8Array({ maxLength: 40 }).map((all) => Buffer.from(all));
const long = fc.constantFrom('0', '1', '-1', '7', '9223372036854775807', '-9223372036854775808');
const parameterName = fc.constantFrom(
  ...['classification', 'priority', 'timeout', 'sequence_id', 'sequence_start', 'triton_x', '__proto__', 'x'],
  ...[
    'shared_memory_region',
    'shared_memory_offset',
    'shared_memory_byte_size',
    'triton_enable_empty_final_response',
  ],
);
const parameter = fc.oneof(
  fc.record({ int64_param: long }),
  fc.record({ bool_param: fc.boolean() }),
  fc.record({ string_param: name }),
  fc.record({ double_param: fc.double() }),
  fc.constant({}),
);
const parameters = fc
  .array(fc.tuple(parameterName, parameter), { maxLength: 3 })
  .map((all) => Object.fromEntries(all));
const contents = fc.oneof(
  fc.record({ fp32_contents: fc.array(fc.float(), { maxLength: 3 }) }),
  fc.record({ bytes_contents: fc.array(bytes, { maxLength: 3 }) }),
  fc.record({ int_contents: fc.array(fc.integer(), { maxLength: 3 }) }),
);
const input = fc.record(
  {
    name,
    datatype: fc.constantFrom('FP32', 'BYTES', 'FP9', ''),
    shape: fc.array(long, { maxLength: 3 }),
    parameters,
    contents,
  },
  { requiredKeys: [] },
);
const inferRequest = fc.record(
  {
    model_name: name,
    model_version: fc.constantFrom('', '1', '2', 'x'),
    id: name,
    parameters,
    inputs: fc.array(input, { maxLength: 3 }),
    outputs: fc.array(fc.record({ name, parameters }), { maxLength: 3 }),
    raw_input_contents: fc.array(bytes, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

/** Codes of a refusal for which its client is to blame, and of an answer. */
const EXPECTED = [
  ...[
    'INVALID_ARGUMENT',
    'NOT_FOUND',
    'UNIMPLEMENTED',
    'RESOURCE_EXHAUSTED',
    'ALREADY_EXISTS',
    'UNAVAILABLE',
    'OK',
  ],
  // What is no message is INTERNAL, as gRPC and Triton have it, and so is a load that fails.
  'INTERNAL',
];
const codeOf = (result: object) => ('code' in result ? result.code : 'OK');

describe('gRPC that is sent anything', () => {
  it('answers any bytes to any method', async () => {
    const { client } = await serve();
    const property = fc.asyncProperty(
      fc.constantFrom(...METHODS),
      fc.uint8Array({ maxLength: 80 }),
      async (method, sent) => {
        expect(EXPECTED).toContain(codeOf(await client.call(method, Buffer.from(sent))));
      },
    );
    await fc.assert(property, { numRuns: 3 * NUM_RUNS });
  });

  it('answers requests that are nearly right', async () => {
    const { client } = await serve();
    const property = fc.asyncProperty(inferRequest, async (request) => {
      const result = await client.call('ModelInfer', request);
      expect(EXPECTED).toContain(codeOf(result));
      if ('message' in result) expect(result.message).toMatch(/\S/);
    });
    await fc.assert(property, { numRuns: 2 * NUM_RUNS });
  });

  it('answers requests with some bytes changed', async () => {
    const { client } = await serve();
    const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
      minLength: 1,
      maxLength: 4,
    });
    const property = fc.asyncProperty(inferRequest, changes, async (request, all) => {
      const message = inferMessage(request).subarray(5);
      for (const [at, byte] of all) if (message.length > 0) message[at % message.length] = byte;
      expect(EXPECTED).toContain(codeOf(await client.call('ModelInfer', message)));
    });
    await fc.assert(property, { numRuns: 2 * NUM_RUNS });
  });

  it('answers streams of anything', async () => {
    const { client } = await serve();
    const message = fc.oneof(inferRequest, bytes);
    const property = fc.asyncProperty(fc.array(message, { maxLength: 4 }), async (messages) => {
      const { code, answers } = await client.exchange('ModelStreamInfer', messages);
      expect(['OK', 'INTERNAL']).toContain(code);
      expect(answers.length).toBeLessThanOrEqual(messages.length);
    });
    await fc.assert(property, { numRuns: NUM_RUNS });
  });
});

describe('gRPC that is sent too much', () => {
  const huge = (fields: string, count: number) => Buffer.from(fields.repeat(count), 'hex');

  it.each([
    ['empty inputs', huge('2a00', 500_000)],
    ['empty outputs', huge('3200', 500_000)],
    ['empty tensors', huge('3a00', 500_000)],
    ['empty parameters', huge('2200', 500_000)],
    ['names', huge('0a00', 500_000)],
    ['unknown fields', huge('a00600', 300_000)],
    ['groups in groups', huge('a306', 500_000)],
    ['one long name', Buffer.concat([Buffer.from('0a80801e', 'hex'), Buffer.alloc(2 ** 19 - 2 ** 15, 0x61)])],
  ])('refuses %s', async (_, message) => {
    const { client } = await serve();
    const code = codeOf(await client.call('ModelInfer', message));
    expect(['INVALID_ARGUMENT', 'INTERNAL']).toContain(code);
    for (const method of ['ModelReady', 'RepositoryIndex', 'TraceSetting']) {
      expect(codeOf(await client.call(method, message))).toBe('RESOURCE_EXHAUSTED');
    }
    expect(['INVALID_ARGUMENT', 'INTERNAL']).toContain(
      codeOf(await client.call('RepositoryModelLoad', message)),
    );
  });

  it('refuses metadata that is too long, with its call or its connection', async () => {
    const { connect: another } = await serve();
    const client = another({ metadata: { x: 'y'.repeat(30_000) } });
    expect(codeOf(await client.call('ServerLive', {}))).not.toBe('OK');
  });

  it('holds no more for a thousand streams that are opened and left', async () => {
    const { address, ledger } = await serve({ maxBodyBytes: 2 ** 24 });
    const session = connect(`http://${address}`);
    session.on('error', () => {});
    onTestFinished(() => session.destroy());
    await new Promise((resolve) => session.on('remoteSettings', resolve));
    const announced = Buffer.from('0000ffffff', 'hex');
    for (let i = 0; i < 1000; i++) {
      const stream = openCall(session, i % 2 === 0 ? 'ModelStreamInfer' : 'ModelInfer');
      if (i % 4 > 0) stream.write(announced);
      if (i % 4 > 1) stream.write(Buffer.alloc(10));
    }
    await expect.poll(() => ledger.held).toBeGreaterThan(2 ** 24);
    // What each stream announces would be 16 GiB.
    expect(ledger.held).toBeLessThan(2 ** 30);
    session.destroy();
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('refuses what there is no memory for, before it has come', async () => {
    const { address, ledger } = await serve({ maxBodyBytes: 2 ** 24 });
    const hold = ledger.open('request');
    expect(hold.resize(2 ** 30 - 2 ** 20)).toBe(true);
    const stream = rawStream(address, 'ModelInfer');
    stream.write(Buffer.from('0000ffffff', 'hex'));
    const status = new Promise((resolve) =>
      stream.on('response', (headers) => resolve(headers['grpc-status'])),
    );
    expect(await status).toBe('8');
    hold.release();
  });
});

describe('gRPC whose clients leave', () => {
  it('gives everything back, wherever they were', async () => {
    const { address } = await serve();
    const good = inferMessage({
      model_name: 'same',
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1] }],
      raw_input_contents: [Buffer.alloc(4)],
    });
    const cut = fc.integer({ min: 0, max: 2 * good.length });
    const ending = fc.constantFrom('reset', 'end', 'destroy');
    const property = fc.asyncProperty(
      fc.constantFrom('ModelInfer', 'ModelStreamInfer'),
      cut,
      ending,
      async (method, length, how) => {
        const stream = rawStream(address, method);
        const { session } = stream;
        stream.resume();
        stream.write(Buffer.concat([good, good]).subarray(0, length));
        if (how === 'reset') stream.close(8);
        else if (how === 'end') stream.end();
        else session?.destroy();
        await new Promise((resolve) => (stream.destroyed ? resolve(null) : stream.on('close', resolve)));
        session?.destroy();
      },
    );
    await fc.assert(property, { numRuns: NUM_RUNS });
  });

  it('goes on where they are no clients of HTTP/2', async () => {
    const { address } = await serve();
    const [host, port] = address.split(':') as [string, string];
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const property = fc.asyncProperty(
      fc.boolean(),
      fc.uint8Array({ maxLength: 200 }),
      async (isGreeted, sent) => {
        const socket = connectTcp(Number(port), host);
        socket.on('error', () => {});
        socket.end(Buffer.concat([...(isGreeted ? [preface] : []), sent]));
        socket.resume();
        await new Promise((resolve) => socket.on('close', resolve));
      },
    );
    await fc.assert(property, { numRuns: NUM_RUNS });
  });

  it('answers others while a stream sends one byte after the other', async () => {
    const { address, client } = await serve();
    const stream = rawStream(address, 'ModelStreamInfer');
    stream.resume();
    const message = framed(Buffer.alloc(20, 1));
    for (const byte of message) {
      stream.write(Buffer.of(byte));
      await answered(client.call('ServerLive', {}));
    }
    stream.close(8);
  });
});
