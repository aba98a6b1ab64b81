import { gunzipSync, gzipSync, inflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';
import { fakePlatform } from './support/fake-platform.js';

const ints = () => new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
const texts = () => new FakeModel(fakeConfig({ name: 'texts', type: 'TYPE_STRING', dims: [-1] }));
const input = (data: readonly unknown[], datatype = 'INT32') => ({
  name: 'INPUT0',
  shape: [data.length],
  datatype,
  data,
});
const errorOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: string }).error,
];

describe('POST /v2/models/M/infer', () => {
  it('hands on the id, parameters, priority, timeout and sequence', async () => {
    const model = ints();
    const platform = fakePlatform([model]);
    const parameters = {
      priority: 2,
      timeout: 500,
      sequence_id: 9,
      sequence_start: true,
      mine: 'x',
      flag: true,
    };
    const response = await platform.infer('ints', { id: 'a', inputs: [input([1])], parameters });
    expect(await response.json()).toMatchObject({ id: 'a', outputs: [{ data: [1] }] });
    expect(model.requests[0]).toMatchObject({
      id: 'a',
      priority: 2,
      timeoutUs: 500,
      sequence: { id: 9n, start: true, end: false },
      parameters: { mine: 'x', flag: true },
    });
  });

  it.each(['generate', 'generate_stream'])('does so for %s, wherever they stand', async (verb) => {
    const model = ints();
    const { app } = fakePlatform([model]);
    const ask = (body: object) =>
      app.request(`/v2/models/ints/${verb}`, { method: 'POST', body: JSON.stringify(body) });
    const own = { priority: 2, timeout: 500, sequence_id: 11, sequence_start: true };
    const known = {
      priority: 2,
      timeoutUs: 500,
      sequence: { id: 11n, start: true, end: false },
      parameters: { mine: 'x' },
    };
    for (const body of [
      { INPUT0: 5, mine: 'x', ...own },
      { INPUT0: 5, parameters: { mine: 'x', ...own } },
    ]) {
      const response = await ask(body);
      expect([response.status, model.requests.at(-1)]).toMatchObject([200, known]);
      await response.text();
    }
    expect((await ask({ INPUT0: 5, sequence_id: 'a', sequence_end: true })).status).toBe(200);
    expect(model.requests.at(-1)!.sequence).toEqual({ id: 'a', start: false, end: true });
    expect(model.requests.length).toBe(3);
    for (const wrong of [
      { priority: -1 },
      { timeout: 1.5 },
      { sequence_id: -1 },
      { sequence_id: 1, sequence_start: 1 },
    ]) {
      const named = Object.keys(wrong).at(-1)!;
      const expected = [400, expect.stringContaining(`Unable to parse '${named}'`)];
      expect(await errorOf(await ask({ INPUT0: 5, ...wrong }))).toEqual(expected);
      expect(await errorOf(await ask({ INPUT0: 5, parameters: wrong }))).toEqual(expected);
    }
    expect(model.requests.length).toBe(3);
  });

  it('refuses the name of an adapter where nobody would read it', async () => {
    const ignores = new FakeModel(fakeConfig({ name: 'ints', type: 'TYPE_INT32', dims: [-1] }));
    Object.assign(ignores, { ignoresParameters: true });
    const body = { inputs: [input([1])], parameters: { lora_name: 'sql' } };
    expect(await errorOf(await fakePlatform([ignores]).infer('ints', body))).toEqual([
      400,
      "parameter 'lora_name' is for models that generate text; 'ints' takes no LoRA adapters",
    ]);
    expect(ignores.requests).toEqual([]);
    const reads = ints();
    expect((await fakePlatform([reads]).infer('ints', body)).status).toBe(200);
    expect(reads.requests[0]!.parameters).toEqual({ lora_name: 'sql' });
  });

  it.each([
    ['FLOAT', '"FLOAT" is found; FP32 may be meant: one of BOOL, INT8, '],
    ['TYPE_STRING', '"TYPE_STRING" is found; BYTES may be meant: one of BOOL, '],
    ['FP9', '"FP9" is found; one of BOOL, INT8, '],
  ])('says what is a datatype where %s is none', async (datatype, expected) => {
    const [status, error] = await errorOf(
      await fakePlatform([ints()]).infer('ints', { inputs: [input([1], datatype)] }),
    );
    expect(status).toBe(400);
    expect(error).toContain(`invalid datatype for input INPUT0: ${expected}`);
  });

  it.each([
    ['a short one', Buffer.from([0xff, 0x00])],
    ['the rest of a character', Buffer.from([0xe2, 0x82])],
    ['a long one', Buffer.concat([Buffer.alloc(300_000, 'a'), Buffer.from([0xc3])])],
  ])('refuses to write bytes that are no UTF-8 as JSON, and sends them as they are: %s', async (_, bytes) => {
    const platform = fakePlatform([texts()]);
    const element = Buffer.alloc(4);
    element.writeUInt32LE(bytes.length);
    const data = Buffer.concat([element, bytes]);
    const parameters = { binary_data_size: data.length };
    const ask = (outputs: object[]) => {
      const tensor = { name: 'INPUT0', shape: [1], datatype: 'BYTES', parameters };
      const header = JSON.stringify({ inputs: [tensor], outputs });
      return platform.infer('texts', Buffer.concat([Buffer.from(header), data]), {
        'inference-header-content-length': String(header.length),
      });
    };
    expect(await errorOf(await ask([{ name: 'OUTPUT0' }]))).toEqual([
      400,
      "output 'OUTPUT0' has bytes that are not UTF-8, which JSON has no form for. Please use the binary data format for output",
    ]);
    const answer = await ask([{ name: 'OUTPUT0', parameters: { binary_data: true } }]);
    expect(
      Buffer.from(await answer.arrayBuffer())
        .subarray(-data.length)
        .equals(data),
    ).toBe(true);
  });

  it('takes an id of a sequence and a timeout of 64 bits', async () => {
    const model = ints();
    const body = JSON.stringify({ inputs: [input([1])] }).replace(
      /\}$/,
      ',"parameters":{"sequence_id":18446744073709551615,"timeout":18446744073709551615}}',
    );
    expect((await fakePlatform([model]).infer('ints', body)).status).toBe(200);
    expect(model.requests[0]).toMatchObject({
      timeoutUs: Number.MAX_SAFE_INTEGER,
      sequence: { id: 18446744073709551615n },
    });
  });

  it.each([
    [0, 200, ''],
    ['', 200, ''],
    ['x'.repeat(128), 200, ''],
    ['x'.repeat(129), 501, 'string correlation ID cannot be longer than 128 characters'],
    [-1, 400, "Unable to parse 'sequence_id': a whole number from 0 to 2^64 - 1 or a string is expected"],
    [1.5, 400, "Unable to parse 'sequence_id': a whole number from 0 to 2^64 - 1 or a string is expected"],
    [true, 400, "Unable to parse 'sequence_id': a whole number from 0 to 2^64 - 1 or a string is expected"],
  ])('holds an id of a sequence against its bounds: %s', async (id, status, error) => {
    const model = ints();
    const parameters = { sequence_id: id, sequence_end: true };
    const response = await fakePlatform([model]).infer('ints', { inputs: [input([1])], parameters });
    expect(response.status).toBe(status);
    if (status !== 200) return expect(await errorOf(response)).toEqual([status, error]);
    const sequence = id === 0 || id === '' ? null : { id, start: false, end: true };
    expect(model.requests[0]!.sequence).toEqual(sequence);
  });

  it('refuses an id of a sequence of more than 64 bits', async () => {
    const text = JSON.stringify({ inputs: [input([1])] });
    const body = text.replace(/\}$/, ',"parameters":{"sequence_id":18446744073709551616}}');
    expect((await errorOf(await fakePlatform([ints()]).infer('ints', body)))[0]).toBe(400);
  });

  it('takes no more texts than it can hold', async () => {
    const model = texts();
    const platform = fakePlatform([model]);
    const count = 500_001;
    const bytes = new Uint8Array(4 * count);
    const tensor = { name: 'INPUT0', shape: [count], datatype: 'BYTES' };
    const header = JSON.stringify({
      inputs: [{ ...tensor, parameters: { binary_data_size: bytes.length } }],
    });
    const binary = platform.infer('texts', Buffer.concat([Buffer.from(header), bytes]), {
      'inference-header-content-length': String(header.length),
    });
    const refusal = 'the inputs have 500001 elements of BYTES; at most 500000 are taken';
    expect(await errorOf(await binary)).toEqual([400, refusal]);
    const list = { ...tensor, data: Array(count).fill('') };
    expect(await errorOf(await platform.infer('texts', { inputs: [list] }))).toEqual([400, refusal]);
    const half = { ...list, shape: [300_000], data: Array(300_000).fill('') };
    const two = { inputs: [half, { ...half, name: 'INPUT1' }] };
    expect(await errorOf(await platform.infer('texts', two))).toEqual([
      400,
      expect.stringContaining('at most 500000'),
    ]);
    expect(model.requests).toEqual([]);
  });

  it('answers an output once, however often it is asked for', async () => {
    const outputs = Array.from({ length: 1000 }, () => ({
      name: 'OUTPUT0',
      parameters: { binary_data: true },
    }));
    const response = await fakePlatform([ints()]).infer('ints', { inputs: [input([1, 2])], outputs });
    const length = Number(response.headers.get('inference-header-content-length'));
    expect((await response.arrayBuffer()).byteLength).toBe(length + 8);
  });

  it('compresses long answers in the coding that the client likes best', async () => {
    const body = { inputs: [input(Array(2000).fill(7))] };
    const platform = fakePlatform([ints()]);
    const plain = await (await platform.infer('ints', body)).text();
    for (const [accepts, coding, inflate] of [
      ['gzip', 'gzip', gunzipSync],
      ['br;q=1, gzip;q=0.5, deflate;q=0.8', 'deflate', inflateSync],
      ['GZIP', 'gzip', gunzipSync],
    ] as const) {
      const response = await platform.infer('ints', body, { 'accept-encoding': accepts });
      expect(response.headers.get('content-encoding')).toBe(coding);
      expect(inflate(Buffer.from(await response.arrayBuffer())).toString()).toBe(plain);
    }
    for (const accepts of ['gzip;q=0', 'br', '*', 'identity']) {
      const response = await platform.infer('ints', body, { 'accept-encoding': accepts });
      expect(response.headers.get('content-encoding')).toBeNull();
    }
  });

  it('bounds a compressed body by what it is when it is inflated', async () => {
    const platform = fakePlatform([texts()], { maxBodyBytes: 100_000 });
    const body = (length: number) =>
      gzipSync(JSON.stringify({ inputs: [input(['x'.repeat(length)], 'BYTES')] }));
    const headers = { 'content-encoding': 'gzip' };
    expect((await platform.infer('texts', body(90_000), headers)).status).toBe(200);
    expect(body(10_000_000).length).toBeLessThan(20_000);
    expect(await errorOf(await platform.infer('texts', body(10_000_000), headers))).toEqual([
      413,
      'The body is longer than 100000 bytes.',
    ]);
  });

  it('refuses what there is no memory for, before it is made', async () => {
    const ledger = new MemoryLedger({ limit: 3_000_000 });
    const truths = new FakeModel(fakeConfig({ name: 'truths', type: 'TYPE_BOOL', dims: [-1] }));
    const platform = fakePlatform([truths, texts()], { ledger });
    // Short when compressed, short as JSON, and long as a tensor's text.
    const long = gzipSync(JSON.stringify({ inputs: [input(['x'.repeat(3_000_000)], 'BYTES')] }));
    const inflated = await platform.infer('texts', long, { 'content-encoding': 'gzip' });
    expect(await errorOf(inflated)).toEqual([413, expect.stringContaining('--max-held-memory-bytes')]);
    const bytes = new Uint8Array(600_000);
    const answer = await platform.infer('truths', bytes, { 'inference-header-content-length': '0' });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    const parameters = { binary_data_size: bytes.length };
    const head = JSON.stringify({
      inputs: [{ name: 'INPUT0', shape: [bytes.length], datatype: 'BOOL', parameters }],
    });
    const asJson = await platform.infer('truths', Buffer.concat([Buffer.from(head), bytes]), {
      'inference-header-content-length': String(head.length),
    });
    expect(await errorOf(asJson)).toEqual([400, expect.stringContaining('--max-held-memory-bytes')]);
    expect(ledger.held).toBe(0);
  });

  it('tells no more classes than a bound', async () => {
    const values = Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 20_011);
    const ask = (classification: number) =>
      fakePlatform([ints()]).infer('ints', {
        inputs: [input(values)],
        outputs: [{ name: 'OUTPUT0', parameters: { classification } }],
      });
    const [found] = ((await (await ask(8000)).json()) as { outputs: { data: string[] }[] }).outputs;
    const expected = values.map((value, i) => [value, i] as const).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    expect(found!.data).toEqual(expected.slice(0, 8000).map(([value, i]) => `${value}:${i}`));
    expect(await errorOf(await ask(20_000))).toEqual([400, expect.stringContaining('at most 8192')]);
  });

  it('refuses a model of several answers', async () => {
    const config = fakeConfig({ name: 'm', type: 'TYPE_INT32', dims: [-1], decoupled: true });
    const response = await fakePlatform([new FakeModel(config)]).infer('m', { inputs: [input([1])] });
    expect(await errorOf(response)).toEqual([
      400,
      "doesn't support models with decoupled transaction policy: 'm'",
    ]);
  });

  it('needs a key as all routes do, and says so in the form of the protocol', async () => {
    const apiKeys = new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]);
    const model = ints();
    const platform = fakePlatform([model], { apiKeys });
    const body = { inputs: [input([1])] };
    expect(await errorOf(await platform.infer('ints', body))).toEqual([
      401,
      expect.stringContaining('API key'),
    ]);
    expect((await platform.infer('ints', body, { authorization: 'Bearer sesame' })).status).toBe(200);
    expect(model.requests.map(({ owner }) => owner)).toEqual(['ali']);
    expect((await platform.get('/v2/health/live')).status).toBe(200);
    expect((await platform.get('/v2')).status).toBe(401);
  });
});
