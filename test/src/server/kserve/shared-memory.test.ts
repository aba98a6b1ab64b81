import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { SharedRegions } from '../../../../src/serving/shared-memory/shared-regions.js';
import { SharedObject } from '../../serving/support/shared-object.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';
import { type FakePlatform, fakePlatform } from './support/fake-platform.js';

const linux = process.platform === 'linux' ? describe : describe.skip;

function serve(options: Parameters<typeof fakePlatform>[1] = {}): FakePlatform {
  const model = new FakeModel(fakeConfig({ name: 'same', type: 'TYPE_FP32', dims: [-1] }));
  const sharedMemory = new SharedRegions({ maxRegions: 4, maxRegionBytes: 2 ** 20, maxBytes: 2 ** 21 });
  onTestFinished(() => sharedMemory.unregister());
  return fakePlatform([model], { sharedMemory, maxBodyBytes: 2 ** 16, ...options });
}

const floats = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer);
const path = '/v2/systemsharedmemory';

async function register(
  { post }: FakePlatform,
  name: string,
  { key }: SharedObject,
  byteSize: number,
): Promise<void> {
  const response = await post(`${path}/region/${name}/register`, { key, offset: 0, byte_size: byteSize });
  expect(response.status).toBe(200);
}

const inRegion = (name: string, size: number, offset = 0) => ({
  shared_memory_region: name,
  shared_memory_byte_size: size,
  shared_memory_offset: offset,
});

linux('shared memory over HTTP', () => {
  it('has inputs and outputs, in its parts', async () => {
    const server = serve();
    const [given, taken] = [new SharedObject(floats(0, 1, 2)), new SharedObject(floats(9, 9, 9))];
    await register(server, 'in', given, 12);
    await register(server, 'out', taken, 12);
    expect(await (await server.get(`${path}/status`)).json()).toEqual([
      { name: 'in', key: given.key, offset: 0, byte_size: 12 },
      { name: 'out', key: taken.key, offset: 0, byte_size: 12 },
    ]);
    const response = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [2], datatype: 'FP32', parameters: inRegion('in', 8, 4) }],
      outputs: [{ name: 'OUTPUT0', parameters: inRegion('out', 8, 4) }],
    });
    expect(await response.json()).toEqual({
      model_name: 'same',
      model_version: '1',
      outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: [2] }],
    });
    expect(taken.read()).toEqual(floats(9, 1, 2));
  });

  it('has inputs beside those that the request brings, in any form', async () => {
    const server = serve();
    await register(server, 'in', new SharedObject(floats(5)), 4);
    const json = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [1], datatype: 'FP32', parameters: inRegion('in', 4) }],
    });
    expect(await json.json()).toMatchObject({ outputs: [{ data: [5] }] });
    const binary = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [1], datatype: 'FP32', parameters: inRegion('in', 4) }],
      parameters: { binary_data_output: true },
    });
    const bytes = Buffer.from(await binary.arrayBuffer());
    expect(bytes.subarray(Number(binary.headers.get('inference-header-content-length')))).toEqual(floats(5));
  });

  it.each([
    [{ ...inRegion('nope', 4) }, 404, "Unable to find shared memory region: 'nope'"],
    [{ ...inRegion('in', 4, 4) }, 400, 'Invalid offset for'],
    [{ ...inRegion('in', 5) }, 400, 'Invalid offset + byte size'],
    [{ shared_memory_region: 5 }, 400, "Unable to parse 'shared_memory_region'"],
    [{ ...inRegion('in', 4), shared_memory_offset: -1 }, 400, "Unable to parse 'shared_memory_offset'"],
    [{ ...inRegion('in', 4), binary_data_size: 4 }, 400, "set 'binary_data_size' 'shared_memory_region'"],
    [{ ...inRegion('in', 2) }, 400, 'input byte size mismatch'],
  ])('is refused as an input: %j', async (parameters, status, message) => {
    const server = serve();
    await register(server, 'in', new SharedObject(floats(5)), 4);
    const response = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [1], datatype: 'FP32', parameters }],
    });
    expect([response.status, await response.json()]).toEqual([
      status,
      { error: expect.stringContaining(message) },
    ]);
  });

  it('has no more inputs for one request than that may bring', async () => {
    const server = serve({ maxBodyBytes: 2 ** 12 });
    await register(server, 'in', new SharedObject(new Uint8Array(2 ** 13)), 2 ** 13);
    const response = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [2 ** 11], datatype: 'FP32', parameters: inRegion('in', 2 ** 13) }],
    });
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.stringContaining('--max-body-bytes') },
    ]);
  });

  it.each([
    [{ ...inRegion('out', 2) }, 500, 'should be at least 4 bytes to hold the results'],
    [{ ...inRegion('out', 4), classification: 1 }, 400, "both 'shared_memory_region' and 'classification'"],
    [{ ...inRegion('out', 4), binary_data: true }, 400, "both 'shared_memory_region' and 'binary_data'"],
  ])('is refused as an output: %j', async (parameters, status, message) => {
    const server = serve();
    await register(server, 'out', new SharedObject(floats(5)), 4);
    const response = await server.infer('same', {
      inputs: [{ name: 'INPUT0', shape: [1], datatype: 'FP32', data: [1] }],
      outputs: [{ name: 'OUTPUT0', parameters }],
    });
    expect([response.status, await response.json()]).toEqual([
      status,
      { error: expect.stringContaining(message) },
    ]);
  });

  it.each([
    [{}, "no 'key' field"],
    [{ key: 'a' }, "no 'byte_size' field"],
    [{ key: 5, byte_size: 4 }, "Unable to parse 'key'"],
    [{ key: 'a', byte_size: '4' }, 'whole numbers'],
    [{ key: 'a', byte_size: -4 }, 'invalid args'],
  ])('registers no %j', async (body, message) => {
    const response = await serve().post(`${path}/region/r/register`, body);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.stringContaining(message) },
    ]);
  });

  it('is let go of when a request is over, however it ends', async () => {
    const server = serve();
    const object = new SharedObject(floats(5));
    await register(server, 'r', object, 4);
    for (const shape of [[1], [2]]) {
      await server.infer('same', {
        inputs: [{ name: 'INPUT0', shape, datatype: 'FP32', parameters: inRegion('r', 4) }],
        outputs: [{ name: 'OUTPUT0', parameters: inRegion('r', 4) }],
      });
    }
    expect((await server.post(`${path}/region/r/unregister`, {})).status).toBe(200);
    // The same name again, which a region that was held would still have.
    await register(server, 'r', object, 4);
  });

  it('is for admins alone, where there are several keys', async () => {
    const apiKeys = new ApiKeys([
      { name: 'ann', key: 'sk-ann', weight: 1 },
      { name: 'bob', key: 'sk-bob', weight: 1, admin: true },
    ]);
    const server = serve({ apiKeys });
    const { key } = new SharedObject(floats(5));
    const as = async (who: string, where: string, body: object) => {
      const headers = { authorization: `Bearer sk-${who}` };
      return (await server.post(where, body, { headers })).status;
    };
    const region = { key, byte_size: 4 };
    const input = { name: 'INPUT0', shape: [1], datatype: 'FP32', parameters: inRegion('r', 4) };
    expect(await as('ann', `${path}/region/r/register`, region)).toBe(403);
    expect(await as('bob', `${path}/region/r/register`, region)).toBe(200);
    expect(await as('ann', '/v2/models/same/infer', { inputs: [input] })).toBe(403);
    expect(await as('bob', '/v2/models/same/infer', { inputs: [input] })).toBe(200);
    expect(await as('ann', `${path}/unregister`, {})).toBe(403);
    expect(await as('bob', `${path}/unregister`, {})).toBe(200);
  });

  it('is not there without leave', async () => {
    const server = serve({ sharedMemory: null });
    const { key } = new SharedObject(floats(5));
    const registering = await server.post(`${path}/region/r/register`, { key, byte_size: 4 });
    expect(registering.status).toBe(501);
    const input = { name: 'INPUT0', shape: [1], datatype: 'FP32', parameters: inRegion('r', 4) };
    const response = await server.infer('same', { inputs: [input] });
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: expect.stringContaining('--allow-shared-memory') },
    ]);
    expect(await (await server.get('/v2')).json()).toMatchObject({
      extensions: expect.not.arrayContaining(['system_shared_memory']),
    });
  });
});
