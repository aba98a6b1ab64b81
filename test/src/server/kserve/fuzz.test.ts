import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DataType } from '../../../../models/repository/model-config.js';
import { draws } from '../../../support/scale.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';
import { fakePlatform } from './support/fake-platform.js';

const TYPES = [
  'BOOL',
  'INT8',
  'UINT16',
  'INT32',
  'INT64',
  'UINT64',
  'FP16',
  'BF16',
  'FP32',
  'FP64',
  'STRING',
];
const models = [
  ...TYPES.map(
    (type) => new FakeModel(fakeConfig({ name: type, type: `TYPE_${type}` as DataType, dims: [-1, 2] })),
  ),
  new FakeModel(fakeConfig({ name: 'rows', type: 'TYPE_FP32', dims: [4], batch: 8 })),
  new FakeModel(fakeConfig({ name: 'text', type: 'TYPE_STRING', dims: [1] })),
];
const platform = fakePlatform(models, { allowsUpload: true });

/** Values that a field may be sent as. */
const hostile = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    2 ** 31,
    2 ** 53,
    2 ** 63,
    1e300,
    '',
    '0',
    'INT32',
    '__proto__',
    [],
    {},
    [[]],
    [null],
    [-1],
    [2 ** 62, 4],
    [2 ** 20, 2 ** 20, 2 ** 20],
    Array(40).fill(1),
    { binary_data_size: 2 ** 40 },
    { binary_data_size: -1 },
    { classification: 2 ** 31 },
    { shared_memory_region: 'x' },
    { constructor: 1, toString: 'x' },
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

/** A request that the model takes, in JSON. */
function valid(model: FakeModel): Record<string, unknown> {
  const [input] = model.config.input;
  const isText = input!.data_type === 'TYPE_STRING';
  const shape = model.config.name === 'rows' ? [1, 4] : model.config.name === 'text' ? [1] : [2, 2];
  const count = shape.reduce((product, size) => product * size, 1);
  const one = isText ? 'x' : input!.data_type === 'TYPE_BOOL' ? true : 1;
  return {
    id: 'a',
    inputs: [
      {
        name: 'INPUT0',
        shape,
        datatype: isText ? 'BYTES' : input!.data_type.slice('TYPE_'.length),
        data: Array(count).fill(one),
        parameters: { mine: 1 },
      },
    ],
    outputs: [{ name: 'OUTPUT0', parameters: { binary_data: false, classification: 0 } }],
    parameters: { binary_data_output: true, sequence_id: 1, sequence_start: true, priority: 1, timeout: 5 },
  };
}

type Place = [holder: Record<string, unknown>, key: string];

/** Every field and item of a value, however deep. */
function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [[holder, key] as Place, ...placesIn(holder[key])]);
}

const changes = fc.array(fc.tuple(fc.nat(), fc.constantFrom('put', 'put', 'drop', 'double'), hostile), {
  maxLength: 3,
});

/** Puts something in the place of some fields, drops or doubles others. */
function change(body: Record<string, unknown>, list: readonly (readonly [number, string, unknown])[]): void {
  for (const [at, what, value] of list) {
    const places = placesIn(body);
    const place = places[at % Math.max(1, places.length)];
    if (place === undefined) continue;
    const [holder, key] = place;
    if (what === 'drop') delete holder[key];
    else if (what === 'double' && Array.isArray(holder)) holder.push(structuredClone(holder[Number(key)]));
    else holder[key] = structuredClone(value);
  }
}

/** An answer that a client can read: tensors, or a refusal that is its own fault and says so. */
async function check(response: Response, what: string): Promise<number> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const length = Number(response.headers.get('inference-header-content-length') ?? bytes.length);
  const text = bytes.subarray(0, length).toString();
  const shown = `${what}: ${response.status} ${text.slice(0, 300)}`;
  expect([200, 400, 404, 413, 501], shown).toContain(response.status);
  // NaN and Infinity are written as they are.
  const body = JSON.parse(text.replaceAll(/(?<=[[,])-?(?:NaN|Infinity)(?=[,\]])/g, '0')) as Record<
    string,
    unknown
  >;
  if (response.status !== 200) {
    expect(Object.keys(body), shown).toEqual(['error']);
    expect(body.error, shown).toMatch(/\S{3}/);
    expect(body.error, shown).not.toMatch(
      /undefined|\[object|is not a function|Cannot read|call stack|not iterable/,
    );
    expect((body.error as string).length, shown).toBeLessThan(3000);
    return response.status;
  }
  const sizes = (body.outputs as { parameters?: { binary_data_size?: number } }[]).map(
    ({ parameters }) => parameters?.binary_data_size ?? 0,
  );
  expect(length + sizes.reduce((sum, size) => sum + size, 0), shown).toBe(bytes.length);
  return 200;
}

it('answers tensors, or says what is wrong, whatever the fields of a request are', async () => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      changes,
      fc.constantFrom(...models),
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom<'json' | 'binary' | 'padded'>('json', 'binary', 'padded'),
      async (list, model, tail, form) => {
        const body = valid(model);
        change(body, list);
        const { name } = model.config;
        const json = Buffer.from(JSON.stringify(body) + (form === 'padded' ? ' '.repeat(2 ** 16) : ''));
        const headers = { 'inference-header-content-length': String(json.length) };
        const response =
          form === 'binary'
            ? await platform.infer(name, Buffer.concat([json, tail]), headers)
            : await platform.infer(name, json);
        const status = await check(response, `${name} ${json.toString().trim().slice(0, 500)}`);
        seen.set(status, (seen.get(status) ?? 0) + 1);
      },
    ),
    { numRuns: draws(600) },
  );
  expect(seen.get(200)).toBeGreaterThan(60);
  expect(seen.get(400)).toBeGreaterThan(200);
});

it('does so whatever the bytes and the headers of a request are', async () => {
  const whole = Buffer.from(
    JSON.stringify({
      inputs: [{ name: 'INPUT0', shape: [1, 4], datatype: 'FP32', parameters: { binary_data_size: 16 } }],
      outputs: [{ name: 'OUTPUT0', parameters: { binary_data: true } }],
    }),
  );
  const body = Buffer.concat([whole, Buffer.alloc(16, 1)]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(body.length), fc.uint8Array({ maxLength: 3 }), fc.nat(3)), { maxLength: 3 }),
      fc.oneof(
        fc.constant(String(whole.length)),
        fc.integer({ min: -2, max: 200 }).map(String),
        fc.constantFrom('', '1e1', '0x10', '99999999999999999999', '1.5', 'x', '00'),
      ),
      fc.constantFrom('', 'identity', 'gzip', 'deflate', 'br', 'GZIP'),
      async (cuts, length, coding) => {
        let spoilt: Buffer = body;
        for (const [at, put, cut] of cuts) {
          spoilt = Buffer.concat([spoilt.subarray(0, at), put, spoilt.subarray(at + cut)]);
        }
        const headers = { 'inference-header-content-length': length, 'content-encoding': coding };
        await check(
          await platform.infer('rows', spoilt, headers),
          `${length} ${coding} ${spoilt.toString('latin1')}`,
        );
      },
    ),
    { numRuns: draws(500) },
  );
});

/** A value of INPUT0 that the model takes. */
function goodField({ config: { name } }: FakeModel): unknown {
  if (name === 'rows') return [1, 2, 3, 4];
  if (name === 'text') return 'x';
  const one = name === 'STRING' ? 'x' : name === 'BOOL' ? true : 1;
  return [one, one];
}

/** A request of the generate extension that some of the time has nothing wrong with it. */
function generateBody(model: FakeModel): fc.Arbitrary<unknown> {
  const good = fc.constant(goodField(model));
  const field = fc.oneof(good, good, hostile);
  const id = fc.oneof(fc.constant('a'), fc.constant('a'), hostile);
  const nested = fc.dictionary(fc.oneof(fc.constant('INPUT0'), fc.string()), field);
  return fc.oneof(
    fc.record({ INPUT0: field, id }, { requiredKeys: [] }),
    fc.record(
      { INPUT0: field, id, parameters: fc.oneof(hostile, nested), other: field },
      { requiredKeys: [] },
    ),
    fc.record({ parameters: nested }),
    hostile,
  );
}

it('does so for fields of the generate extension, at once and as events', async () => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...models).chain((model) => fc.tuple(fc.constant(model), generateBody(model))),
      fc.constantFrom('generate', 'generate_stream'),
      async ([{ config }, fields], route) => {
        const { name } = config;
        const text = JSON.stringify(fields) ?? '';
        const response = await platform.post(`/v2/models/${name}/${route}`, text);
        const answered = await response.text();
        const shown = `${name} ${route} ${text.slice(0, 300)}: ${response.status} ${answered.slice(0, 300)}`;
        expect([200, 400, 413, 415], shown).toContain(response.status);
        seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
        const isStream = route === 'generate_stream' && response.status === 200;
        const json = (isStream ? answered.replace(/^data: /, '') : answered).trim();
        const read = JSON.parse(json.replaceAll(/(?<=[[,:])-?(?:NaN|Infinity)(?=[,\]}])/g, '0')) as object;
        if (response.status === 200)
          expect(read, shown).toMatchObject({ model_name: name, model_version: '1' });
        else expect(read, shown).toEqual({ error: expect.stringMatching(/\S{3}/) });
        expect(answered, shown).not.toMatch(/undefined|\[object|is not a function|Cannot read|call stack/);
      },
    ),
    { numRuns: draws(500) },
  );
  expect(seen.get(200)).toBeGreaterThan(25);
  expect(seen.get(400)).toBeGreaterThan(125);
});

it('does so on every other route', async () => {
  const paths = ['/v2/repository/index', '/v2/logging', '/v2/trace/setting', '/v2/models/rows/trace/setting'];
  const commands = ['load', 'unload'].map((command) => `/v2/repository/models/other/${command}`);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths, ...commands),
      fc.oneof(
        hostile,
        fc.record({
          parameters: fc.dictionary(
            fc.oneof(fc.constantFrom('config', 'share', 'file:1/x', 'file:..'), fc.string()),
            hostile,
          ),
        }),
      ),
      async (path, body) => {
        const response = await platform.post(path, JSON.stringify(body));
        const shown = `${path} ${JSON.stringify(body)} ${response.status}`;
        expect([200, 400, 501], shown).toContain(response.status);
        if (response.status !== 200) {
          expect(await response.json(), shown).toEqual({ error: expect.stringMatching(/\S{3}/) });
        }
      },
    ),
    { numRuns: draws(300) },
  );
});
