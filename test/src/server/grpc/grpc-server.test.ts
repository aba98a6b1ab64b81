import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { onAbort } from '../../../../base/on-abort.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { asInferError } from '../../../../src/serving/infer-failure.js';
import { type FakeConfig, FakeModel, failing, fakeConfig, identity } from '../kserve/support/fake-models.js';
import { answered, grpcPlatform } from './support/grpc-platform.js';

const model = (fields: Partial<FakeConfig> = {}, compute = identity) =>
  new FakeModel(fakeConfig({ name: 'same', type: 'TYPE_FP32', dims: [-1], ...fields }), compute);
const floats = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer);
const asked = (bytes: Buffer, fields: object = {}) => ({
  model_name: 'same',
  inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [bytes.length / 4] }],
  raw_input_contents: [bytes],
  ...fields,
});

/** A model that answers nothing, until its client leaves. */
function waitingModel(): FakeModel {
  const waiting = model();
  waiting.infer = (request, on) => {
    waiting.requests.push(request);
    onAbort(request.signal!, () => on.fail(asInferError(request.signal!.reason)));
  };
  return waiting;
}

describe('gRPC', () => {
  it('tells of the server and its models', async () => {
    const { client } = await grpcPlatform([model()]);
    expect(await answered(client.call('ServerLive', {}))).toEqual({ live: true });
    expect(await answered(client.call('ServerReady', {}))).toEqual({ ready: true });
    expect(await answered(client.call('ServerMetadata', {}))).toMatchObject({
      name: 'skein',
      version: '1.2.3',
    });
    expect(await answered(client.call('ModelMetadata', { name: 'same' }))).toEqual({
      name: 'same',
      versions: ['1'],
      platform: 'fake',
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: ['-1'] }],
      outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: ['-1'] }],
    });
    expect(await answered(client.call('ModelConfig', { name: 'same' }))).toMatchObject({
      config: { name: 'same', backend: 'fake', input: [{ name: 'INPUT0', data_type: 'TYPE_FP32' }] },
    });
  });

  it('answers tensors, raw and by their types, and counts them', async () => {
    const { client } = await grpcPlatform([model()]);
    const bytes = floats(1, 2);
    const expected = {
      model_name: 'same',
      model_version: '1',
      id: '7',
      outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: ['2'] }],
      raw_output_contents: [bytes],
    };
    expect(await answered(client.call('ModelInfer', asked(bytes, { id: '7' })))).toEqual(expected);
    const contents = { fp32_contents: [1, 2] };
    const inputs = [{ name: 'INPUT0', datatype: 'FP32', shape: [2], contents }];
    const typed = { model_name: 'same', id: '7', inputs };
    expect(await answered(client.call('ModelInfer', typed))).toEqual(expected);
    expect(await answered(client.call('ModelStatistics', { name: 'same' }))).toMatchObject({
      model_stats: [
        {
          name: 'same',
          inference_count: '2',
          inference_stats: { success: { count: '2', ns: '20000' }, queue: { count: '2', ns: '8000' } },
          batch_stats: [{ batch_size: '1', compute_infer: { count: '2', ns: '4000' } }],
        },
      ],
    });
  });

  it('hands a model the parameters, of every kind', async () => {
    const { client, repository } = await grpcPlatform([model()]);
    const parameters = {
      a: { int64_param: '-9223372036854775808' },
      b: { uint64_param: '18446744073709551615' },
      c: { bool_param: true },
      d: { string_param: 'x' },
      e: { double_param: 1.5 },
      f: { int64_param: 7 },
      priority: { uint64_param: 3 },
      timeout: { int64_param: 500 },
      sequence_id: { int64_param: -1 },
      sequence_start: { bool_param: true },
    };
    await answered(client.call('ModelInfer', asked(floats(1), { parameters })));
    expect(repository.find('same', '').requests[0]).toMatchObject({
      parameters: { a: -(2n ** 63n), b: 2n ** 64n - 1n, c: true, d: 'x', e: 1.5, f: 7 },
      priority: 3,
      timeoutUs: 500,
      sequence: { id: 2n ** 64n - 1n, start: true, end: false },
    });
  });

  it('refuses an adapter where nobody would read its name, and an id of a sequence that is too long', async () => {
    const plain = Object.assign(model(), { ignoresParameters: true });
    const { client, repository } = await grpcPlatform([plain]);
    const adapter = asked(floats(1), { parameters: { lora_name: { string_param: 'sql' } } });
    expect(await client.call('ModelInfer', adapter)).toEqual({
      code: 'INVALID_ARGUMENT',
      message: "parameter 'lora_name' is for models that generate text; 'same' takes no LoRA adapters",
    });
    const { answers } = await client.exchange('ModelStreamInfer', [adapter]);
    expect(answers).toMatchObject([{ error_message: expect.stringContaining("'lora_name'") }]);
    const long = asked(floats(1), { parameters: { sequence_id: { string_param: 'x'.repeat(129) } } });
    expect(await client.call('ModelInfer', long)).toMatchObject({ code: 'UNIMPLEMENTED' });
    expect(repository.find('same', '').requests).toEqual([]);
  });

  it('names classes', async () => {
    const { client } = await grpcPlatform([model()]);
    const outputs = [{ name: 'OUTPUT0', parameters: { classification: { int64_param: 1 } } }];
    const answer = await answered(client.call('ModelInfer', asked(floats(1, 3, 2), { outputs })));
    expect(answer.outputs).toEqual([{ name: 'OUTPUT0', datatype: 'BYTES', shape: ['1'] }]);
    expect(String((answer.raw_output_contents as Buffer[])[0]!.subarray(4))).toBe('3.000000:1');
  });

  it('loads and unloads models, with what it is given', async () => {
    const { client, repository } = await grpcPlatform([model()], { allowsUpload: true });
    const parameters = {
      config: { string_param: '{}' },
      'file:1/model.mjs': { bytes_param: Buffer.from('code') },
      share: { bool_param: false },
    };
    await answered(client.call('RepositoryModelLoad', { model_name: 'new', parameters }));
    const unload = { unload_dependents: { bool_param: true } };
    await answered(client.call('RepositoryModelUnload', { model_name: 'same', parameters: unload }));
    const [[, , load], unloading] = repository.commands as [
      [string, string, Record<string, unknown>],
      unknown,
    ];
    expect(load).toMatchObject({ config: '{}', share: false });
    expect(Buffer.from((load.files as Map<string, Uint8Array>).get('1/model.mjs')!).toString()).toBe('code');
    expect(unloading).toEqual(['unload', 'same', { unloadDependents: true }]);
    expect(await answered(client.call('RepositoryIndex', {}))).toEqual({});
  });

  it('takes no files without leave', async () => {
    const { client } = await grpcPlatform([model()]);
    const parameters = { config: { string_param: '{}' } };
    expect(await client.call('RepositoryModelLoad', { model_name: 'm', parameters })).toEqual({
      code: 'INVALID_ARGUMENT',
      message: 'this server takes no configuration and no files from clients (--allow-model-upload)',
    });
  });

  it('refuses what it does not have by its code', async () => {
    const { client, address } = await grpcPlatform([model(), model({ name: 'broken' }, failing)]);
    const codeOf = async (method: string, fields: object) =>
      ((await client.call(method, fields)) as { code?: string }).code;
    expect(await codeOf('ModelInfer', asked(floats(1), { model_name: 'nope' }))).toBe('NOT_FOUND');
    expect(await codeOf('ModelInfer', asked(floats(1), { model_version: 'x' }))).toBe('INVALID_ARGUMENT');
    expect(await codeOf('ModelInfer', asked(floats(1), { model_name: 'broken' }))).toBe('INTERNAL');
    expect(await codeOf('SystemSharedMemoryRegister', { name: 'a', key: 'b', byte_size: 1 })).toBe(
      'UNIMPLEMENTED',
    );
    expect(await codeOf('CudaSharedMemoryRegister', { name: 'a' })).toBe('UNIMPLEMENTED');
    expect(await codeOf('ModelReady', Buffer.from('ff', 'hex'))).toBe('INTERNAL');
    expect(await codeOf('ModelReady', { name: 'x'.repeat(70_000) })).toBe('RESOURCE_EXHAUSTED');
    const other = new grpc.Client(address, grpc.credentials.createInsecure());
    onTestFinished(() => other.close());
    const bytes = (content: Buffer) => content;
    const unknown = new Promise((resolve) => {
      other.makeUnaryRequest('/a.B/C', bytes, bytes, Buffer.alloc(0), resolve);
    });
    expect(await unknown).toMatchObject({
      code: grpc.status.UNIMPLEMENTED,
      details: expect.stringContaining('/a.B/C'),
    });
  });

  it('tells nothing of an error that nobody expected', async () => {
    const leak = model({ name: 'leak' }, () => {
      throw new TypeError('a secret');
    });
    const { client, log } = await grpcPlatform([leak]);
    const result = await client.call('ModelInfer', asked(floats(1), { model_name: 'leak' }));
    expect(result).toEqual({ code: 'INTERNAL', message: 'The server failed to handle this request.' });
    expect(log).toHaveLength(1);
    expect(log[0]).toMatchObject({ level: 'error', err: { message: 'a secret' } });
  });
});

describe('an engine that the metadata of a call names', () => {
  it('is told to a model that generates text, and refused by any other', async () => {
    const other = model();
    const texts = Object.assign(model({ name: 'texts' }), { kind: 'generator' }) as FakeModel;
    const { connect } = await grpcPlatform([other, texts]);
    const pinned = connect({ metadata: { 'x-skein-engine': 'fp_a' } });
    expect(await pinned.call('ModelInfer', asked(floats(1)))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(
        "X-Skein-Engine is for models that generate text; 'same' has no engine",
      ),
    });
    await answered(pinned.call('ModelInfer', asked(floats(1), { model_name: 'texts' })));
    expect(texts.requests.map(({ terms }) => terms!.engine)).toEqual(['fp_a']);
    expect(other.requests).toEqual([]);
  });
});

describe('keys of gRPC', () => {
  const apiKeys = new ApiKeys([
    { name: 'ann', key: 'sk-ann', weight: 1 },
    { name: 'bob', key: 'sk-bob', weight: 1, admin: true },
  ]);

  it('are asked for as over HTTP, but for health', async () => {
    const { client, connect, accessLog } = await grpcPlatform([model()], { apiKeys });
    expect(await client.call('ModelReady', { name: 'same' })).toMatchObject({ code: 'UNAUTHENTICATED' });
    const wrong = connect({ metadata: { authorization: 'Bearer nope' } });
    expect(await wrong.call('ModelReady', { name: 'same' })).toMatchObject({ code: 'UNAUTHENTICATED' });
    for (const metadata of [{ authorization: 'Bearer sk-ann' }, { 'x-api-key': 'sk-ann' }]) {
      expect(await answered(connect({ metadata }).call('ModelReady', { name: 'same' }))).toEqual({
        ready: true,
      });
    }
    for (const method of ['ServerLive', 'ServerReady', 'Check']) await answered(client.call(method, {}));
    expect(accessLog.map(({ key }) => key)).toEqual(['', '', 'ann', 'ann', '', '', '']);
  });

  it('own the sequences that they begin, also on a stream', async () => {
    const { connect, repository } = await grpcPlatform([model()], { apiKeys });
    const parameters = { sequence_id: { int64_param: 7 }, sequence_start: { bool_param: true } };
    for (const key of ['sk-ann', 'sk-bob']) {
      const client = connect({ metadata: { authorization: `Bearer ${key}` } });
      await answered(client.call('ModelInfer', asked(floats(1), { parameters })));
      await client.exchange('ModelStreamInfer', [asked(floats(1), { parameters })]);
    }
    const { requests } = repository.find('same', '');
    expect(requests.map(({ owner }) => owner)).toEqual(['ann', 'ann', 'bob', 'bob']);
  });

  it('of admins alone change what is logged', async () => {
    const { connect } = await grpcPlatform([model()], { apiKeys });
    const ann = connect({ metadata: { authorization: 'Bearer sk-ann' } });
    const bob = connect({ metadata: { authorization: 'Bearer sk-bob' } });
    const change = { settings: { log_verbose_level: { uint32_param: 1 }, log_info: { bool_param: false } } };
    for (const method of ['LogSettings', 'TraceSetting']) {
      const asked = method === 'LogSettings' ? change : { settings: { trace_rate: { value: ['1000'] } } };
      expect(await ann.call(method, asked)).toMatchObject({ code: 'PERMISSION_DENIED' });
      await answered(ann.call(method, {}));
      await answered(bob.call(method, asked));
    }
    const { settings } = await answered(ann.call('LogSettings', {}));
    expect(settings).toMatchObject({
      log_verbose_level: { uint32_param: 1 },
      log_info: { bool_param: false },
    });
  });

  it('of admins alone load models and use shared memory', async () => {
    const { connect } = await grpcPlatform([model()], { apiKeys });
    const ann = connect({ metadata: { authorization: 'Bearer sk-ann' } });
    const bob = connect({ metadata: { authorization: 'Bearer sk-bob' } });
    const load = { model_name: 'same' };
    expect(await ann.call('RepositoryModelLoad', load)).toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await ann.call('RepositoryModelUnload', load)).toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await answered(bob.call('RepositoryModelLoad', load))).toEqual({});
  });
});

describe('a call of gRPC', () => {
  it('has its id, a line in the log, and numbers', async () => {
    const { connect, accessLog, metrics } = await grpcPlatform([model()]);
    const client = connect({ metadata: { 'x-request-id': 'mine' } });
    await answered(client.call('ModelInfer', asked(floats(1))));
    await client.call('ModelInfer', {});
    await answered(client.call('ServerLive', {}));
    await expect.poll(() => accessLog).toHaveLength(3);
    expect(accessLog[0]).toMatchObject({
      level: 'info',
      message: 'request',
      requestId: 'mine',
      method: 'gRPC',
      path: '/inference.GRPCInferenceService/ModelInfer',
      status: 'OK',
      remote: '127.0.0.1',
      isWhole: true,
    });
    expect(accessLog.map(({ level, status }) => [level, status])).toEqual([
      ['info', 'OK'],
      ['info', 'NOT_FOUND'],
      ['debug', 'OK'],
    ]);
    const text = await metrics.text();
    expect(text).toContain('skein:grpc_calls_total{method="ModelInfer",code="OK"} 1');
    expect(text).toContain('skein:grpc_calls_total{method="ModelInfer",code="NOT_FOUND"} 1');
    expect(text).toContain('skein:grpc_call_duration_seconds_count{method="ModelInfer"} 2');
    expect(text).toContain('skein:requests_refused_total{code="grpc_NOT_FOUND"} 1');
  });

  it('is for a name of the server', async () => {
    const { connect } = await grpcPlatform([model()], { allowedHosts: ['skein.example'] });
    const named = (name: string) => connect({ channel: { 'grpc.default_authority': name } });
    expect(await answered(named('skein.example').call('ServerLive', {}))).toEqual({ live: true });
    expect(await answered(named('localhost').call('ServerLive', {}))).toEqual({ live: true });
    expect(await named('evil.example').call('ServerLive', {})).toMatchObject({ code: 'PERMISSION_DENIED' });
  });

  it('has a bound on its message, and on what it is inflated to', async () => {
    const { client, connect, ledger } = await grpcPlatform([model()], { maxBodyBytes: 100_000 });
    const long = asked(floats(...Array<number>(30_000).fill(1)));
    expect(await client.call('ModelInfer', long)).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('--max-body-bytes'),
    });
    const zipped = connect({ channel: { 'grpc.default_compression_algorithm': 2 } });
    expect(await zipped.call('ModelInfer', long)).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    await expect.poll(() => ledger.held).toBe(0);
  });

  it.each([
    ['deflate', 1],
    ['gzip', 2],
  ])('is compressed both ways by %s', async (_, algorithm) => {
    const { connect, accessLog } = await grpcPlatform([model()]);
    const client = connect({ channel: { 'grpc.default_compression_algorithm': algorithm } });
    for (const count of [2, 5000]) {
      const bytes = floats(...Array<number>(count).fill(1));
      const answer = await answered(client.call('ModelInfer', asked(bytes)));
      expect(answer.raw_output_contents).toEqual([bytes]);
    }
    await expect.poll(() => accessLog).toHaveLength(2);
  });

  it('is counted with what all clients make the server hold', async () => {
    const ledger = new MemoryLedger({ limit: 200_000 });
    const { client } = await grpcPlatform([model()], { ledger });
    expect(await client.call('ModelInfer', asked(floats(...Array<number>(60_000).fill(1))))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('--max-held-memory-bytes'),
    });
    await expect.poll(() => ledger.held).toBe(0);
    const hold = ledger.open('request');
    expect(hold.resize(195_000)).toBe(true);
    expect(await client.call('ModelInfer', asked(floats(1)))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('hold all the memory'),
    });
    hold.release();
    await answered(client.call('ModelInfer', asked(floats(1))));
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('ends in its time, and tells its model', async () => {
    const waiting = waitingModel();
    const { client, ledger } = await grpcPlatform([waiting]);
    const call = client.call('ModelInfer', asked(floats(1)), { deadline: Date.now() + 2000 });
    expect(await call).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await expect.poll(() => waiting.requests[0]?.signal?.aborted).toBe(true);
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('ends where its client leaves, and tells its model', async () => {
    const waiting = waitingModel();
    const { client, accessLog, ledger } = await grpcPlatform([waiting]);
    const call = client.stream('ModelInfer');
    call.on('error', () => {});
    call.end(asked(floats(1)));
    await expect.poll(() => waiting.requests.length).toBe(1);
    call.cancel();
    await expect.poll(() => waiting.requests[0]?.signal?.aborted).toBe(true);
    await expect.poll(() => accessLog.at(-1)).toMatchObject({ status: 'CANCELLED', isWhole: false });
    await expect.poll(() => ledger.held).toBe(0);
    await answered(client.call('ServerLive', {}));
  });
});

/** Sends frames of HTTP/2 as they are; resolves with the headers and trailers of the answer together. */
async function raw(
  address: string,
  headers: Record<string, string>,
  chunks: readonly Buffer[],
  { isOpen = false } = {},
): Promise<Record<string, unknown>> {
  const session = connectHttp2(`http://${address}`);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ServerMetadata',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  stream.on('error', () => {});
  for (const chunk of chunks) stream.write(chunk);
  if (!isOpen) stream.end();
  const found: Record<string, unknown> = {};
  stream.on('response', (answer) => Object.assign(found, answer));
  stream.on('trailers', (trailers) => Object.assign(found, trailers));
  stream.resume();
  await new Promise((resolve) => stream.on('close', resolve));
  return { ...found, rstCode: stream.rstCode };
}

describe('what is no call', () => {
  const EMPTY = Buffer.alloc(5);

  it('is refused as HTTP has it', async () => {
    const { address } = await grpcPlatform([]);
    expect(await raw(address, { 'content-type': 'application/json' }, [EMPTY])).toMatchObject({
      ':status': 415,
    });
    expect(await raw(address, { ':method': 'GET' }, [])).toMatchObject({ ':status': 415 });
    expect(await raw(address, { 'content-type': 'application/grpc+proto' }, [EMPTY])).toMatchObject({
      'grpc-status': '0',
    });
  });

  it.each([
    ['several messages', {}, [EMPTY, EMPTY], '12'],
    ['no message', {}, [], '12'],
    ['half a message', {}, [Buffer.from('000000000a01', 'hex')], '13'],
    ['a wrong first byte', {}, [Buffer.from('0900000000', 'hex')], '13'],
    ['a compressed message without a coding', {}, [Buffer.from('0100000000', 'hex')], '13'],
    ['what is not in its coding', { 'grpc-encoding': 'gzip' }, [Buffer.from('0100000001aa', 'hex')], '13'],
    ['an unknown coding', { 'grpc-encoding': 'snappy' }, [Buffer.from('0100000001aa', 'hex')], '12'],
    ['a time that is none', { 'grpc-timeout': 'soon' }, [EMPTY], '3'],
    ['an announced length beyond the limit', {}, [Buffer.from('00ffffffff', 'hex')], '8'],
  ])('is refused: %s', async (_, headers, chunks, status) => {
    const { address, ledger } = await grpcPlatform([]);
    const answer = await raw(address, headers, chunks);
    expect(answer).toMatchObject({ ':status': 200, 'grpc-status': status });
    await expect.poll(() => ledger.held).toBe(0);
  });

  it('is answered before its end where it is refused, and its client told to stop', async () => {
    const { address } = await grpcPlatform([]);
    const answer = await raw(address, { ':path': '/a.B/C' }, [Buffer.alloc(1000)], { isOpen: true });
    expect(answer).toMatchObject({ 'grpc-status': '12', rstCode: 0 });
  });

  it('is refused where it stops in the middle', async () => {
    const { address } = await grpcPlatform([], { stallLimitMs: 50 });
    const answer = await raw(address, {}, [Buffer.from('000000000a01', 'hex')], { isOpen: true });
    expect(answer).toMatchObject({ 'grpc-status': '4' });
  });

  it('ends its connection where it is no HTTP/2', async () => {
    const { address, client } = await grpcPlatform([]);
    const [host, port] = address.split(':') as [string, string];
    const socket = connectTcp(Number(port), host);
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    socket.resume();
    await new Promise((resolve) => socket.on('close', resolve));
    await answered(client.call('ServerLive', {}));
  });
});

describe('a connection', () => {
  it('is one of so many', async () => {
    const { client, connect } = await grpcPlatform([], { maxConnections: 1 });
    await answered(client.call('ServerLive', {}));
    expect(await connect().call('ServerLive', {})).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('--max-connections'),
    });
  });

  it('has so many calls at once', async () => {
    const { address } = await grpcPlatform([], { maxStreams: 7 });
    const session = connectHttp2(`http://${address}`);
    onTestFinished(() => session.destroy());
    await new Promise((resolve) => session.on('remoteSettings', resolve));
    expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListSize: 16_384 });
  });

  it('ends where its client does nothing but ask whether the server is there', async () => {
    const { address } = await grpcPlatform([]);
    const session = connectHttp2(`http://${address}`);
    session.on('error', () => {});
    const wentAway = new Promise<unknown[]>((resolve) => session.on('goaway', (...all) => resolve(all)));
    const flood = setInterval(() => session.destroyed || session.ping(() => {}), 0);
    onTestFinished(() => clearInterval(flood));
    const [code, , data] = await wentAway;
    expect([code, String(data)]).toEqual([11, 'too_many_pings']);
  });
});

describe('the end of a server', () => {
  it('waits for calls that are under way, refuses others, and cuts the rest', async () => {
    const waiting = model();
    const answers: (() => void)[] = [];
    const infer = waiting.infer.bind(waiting);
    waiting.infer = (request, on) => void answers.push(() => infer(request, on));
    const { client, server, state } = await grpcPlatform([waiting]);
    const call = client.call('ModelInfer', asked(floats(1)));
    await expect.poll(() => answers.length).toBe(1);
    state.drain(60_000);
    const drained = server.drain(60_000);
    expect(await client.call('ModelInfer', asked(floats(2)))).toMatchObject({ code: 'UNAVAILABLE' });
    expect(await answered(client.call('ServerReady', {}))).toEqual({});
    expect(await answered(client.call('Check', {}))).toEqual({ status: 'NOT_SERVING' });
    answers[0]!();
    expect(await answered(call)).toMatchObject({ model_name: 'same' });
    expect(await drained).toBe(true);
  });

  it('tells those that it cuts off', async () => {
    const waiting = waitingModel();
    const { client, server, state } = await grpcPlatform([waiting]);
    const call = client.call('ModelInfer', asked(floats(1)));
    await expect.poll(() => waiting.requests.length).toBe(1);
    state.drain(0);
    expect(await server.drain(0)).toBe(false);
    await server.close(60_000);
    expect(await call).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('cut off') });
    expect(waiting.requests[0]!.signal!.aborted).toBe(true);
  });
});

describe('health', () => {
  it('is told of the server and its service', async () => {
    const { client } = await grpcPlatform([]);
    for (const service of ['', 'inference.GRPCInferenceService']) {
      expect(await answered(client.call('Check', { service }))).toEqual({ status: 'SERVING' });
    }
    expect(await client.call('Check', { service: 'nope' })).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is told whenever it changes', async () => {
    const { client, state } = await grpcPlatform([]);
    const watch = client.stream('Watch');
    const told: unknown[] = [];
    watch.on('data', ({ status }) => told.push(status));
    watch.on('error', () => {});
    watch.write({});
    watch.end();
    await expect.poll(() => told).toEqual(['SERVING']);
    state.drain(1000);
    await expect.poll(() => told).toEqual(['SERVING', 'NOT_SERVING']);
    watch.cancel();
  });

  it('of an unknown service is unknown', async () => {
    const { client } = await grpcPlatform([]);
    const watch = client.stream('Watch');
    watch.on('error', () => {});
    watch.write({ service: 'nope' });
    watch.end();
    const first = await new Promise((resolve) => watch.on('data', resolve));
    expect(first).toEqual({ status: 'SERVICE_UNKNOWN' });
    watch.cancel();
  });
});
