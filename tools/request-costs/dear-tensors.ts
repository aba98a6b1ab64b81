import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { MAX_ELEMENTS } from '../../callbacks/infer/byte-elements.js';
import type { Cost } from './measure.js';
import type { MeteredServer } from './metered-server.js';

/** A request for tensors that is the most expensive of its kind. */
export interface DearTensors {
  name: string;
  path: string;
  body: Buffer;
  headers: Record<string, string>;
}

/** Bytes of the longest body, less what stands around its tensors. */
const BODY = 2 ** 24 - 4096;
const TYPES = { i8: 'INT8', i64: 'INT64', f32: 'FP32', f64: 'FP64', texts: 'STRING', bool: 'BOOL' } as const;
type Model = keyof typeof TYPES;

/** Writes a repository of models that answer their input, one of each type. */
export function writeIdentities(directory: string): void {
  for (const [name, type] of Object.entries(TYPES)) {
    mkdirSync(join(directory, name, '1'), { recursive: true });
    const tensor = (of: string) => `[{name: ${of}, data_type: TYPE_${type}, dims: [-1]}]`;
    const config = `backend: module\ninput: ${tensor('X')}\noutput: ${tensor('Y')}\n`;
    writeFileSync(join(directory, name, 'config.yaml'), config);
    const code = 'export const execute = (all) => all.map(({ inputs }) => ({ outputs: { Y: inputs.X } }));\n';
    writeFileSync(join(directory, name, '1/model.mjs'), code);
  }
}

const datatypeOf = (model: Model) => (TYPES[model] === 'STRING' ? 'BYTES' : TYPES[model]);

/** As many elements of a list of JSON as a body holds, at most `most`. */
function list(name: string, model: Model, element: string, most = Number.POSITIVE_INFINITY): DearTensors {
  const count = Math.min(most, Math.floor(BODY / (element.length + 1)));
  const data = `[${Array(count).fill(element).join(',')}]`;
  const text = `{"inputs":[{"name":"X","shape":[${count}],"datatype":"${datatypeOf(model)}","data":${data}}]}`;
  return { name, path: `/v2/models/${model}/infer`, body: Buffer.from(text), headers: {} };
}

/** A binary tensor, answered as JSON. */
function binary(name: string, model: Model, count: number, bytes: Uint8Array, more = ''): DearTensors {
  const input = `{"name":"X","shape":[${count}],"datatype":"${datatypeOf(model)}","parameters":{"binary_data_size":${bytes.length}}}`;
  const head = Buffer.from(`{"inputs":[${input}]${more}}`);
  const headers = { 'inference-header-content-length': String(head.length) };
  return { name, path: `/v2/models/${model}/infer`, body: Buffer.concat([head, bytes]), headers };
}

const bytesOf = ({ buffer }: { buffer: ArrayBufferLike }) => new Uint8Array(buffer);

/** BYTES data: `count` texts of `length` letters. */
function texts(count: number, length: number): Uint8Array {
  const data = Buffer.alloc(count * (4 + length), 97);
  for (let i = 0; i < count; i++) data.writeUInt32LE(length, i * (4 + length));
  return data;
}

/**
 * The most expensive requests that the routes of tensors take, and those that they refuse for what they hold.
 */
export function dearTensors(): DearTensors[] {
  const waves = new Float32Array(BODY / 4).map((_, i) => Math.sin(i));
  const digits = list('as many small numbers as a body holds', 'i8', '1');
  const nested = `{"inputs":[{"name":"X","shape":[1],"datatype":"INT8","data":${'['.repeat(8e6)}1${']'.repeat(8e6)}}]}`;
  const names = Array.from({ length: 500_000 }, (_, i) => `"p${i}":1`).join(',');
  const to = (path: string, name: string, text: string): DearTensors => ({
    name,
    path,
    body: Buffer.from(text),
    headers: {},
  });
  return [
    digits,
    list('64-bit numbers', 'i64', '-9000000000000000001'),
    list('floats', 'f32', '0.1234567'),
    list('small floats', 'f64', '1e-300'),
    list('booleans', 'bool', 'true'),
    list('empty texts', 'texts', '""', MAX_ELEMENTS),
    list('texts with escapes', 'texts', '"\\u0061\\n"', MAX_ELEMENTS),
    list('one long text', 'texts', `"${'€'.repeat(5e6)}"`, 1),
    binary('bytes to JSON', 'i8', BODY, new Uint8Array(BODY).fill(200)),
    binary('floats to JSON', 'f32', BODY / 4, bytesOf(new Float32Array(BODY / 4).fill(1.2345678))),
    binary('texts to JSON', 'texts', MAX_ELEMENTS, texts(MAX_ELEMENTS, 28)),
    binary(
      'a thousand classes of many',
      'f32',
      BODY / 4,
      bytesOf(waves),
      ',"outputs":[{"name":"Y","parameters":{"classification":1000}}]',
    ),
    {
      ...digits,
      name: 'numbers, compressed',
      body: gzipSync(digits.body),
      headers: { 'content-encoding': 'gzip' },
    },
    binary(
      'many classes of ascending numbers',
      'i64',
      BODY / 8,
      bytesOf(new BigInt64Array(BODY / 8).map((_, i) => BigInt(i))),
      ',"outputs":[{"name":"Y","parameters":{"classification":8192}}]',
    ),
    to('/v2/models/i8/infer', 'a number of a million digits', `{"a":${'1'.repeat(1e6)}.}`),
    to('/v2/models/i8/infer', 'numbers of many digits', `{"a":${`${'1'.repeat(5000)}.`.repeat(200)}}`),
    to(
      '/v2/models/i8/infer',
      'colons behind a name',
      `{"inputs":[{"\\u0064\\u0061\\u0074\\u0061"${':'.repeat(15e6)}`,
    ),
    to('/v2/models/i8/infer', 'lists in lists', nested),
    to('/v2/models/i8/generate', 'a list of many fields', `{"X":[${'1,'.repeat(500_000)}1]}`),
    to('/v2/models/i8/generate', 'fields in fields', `{"X":${nested}}`),
    to('/v2/models/i8/generate', 'many parameters of generate', `{"parameters":{${names}}}`),
    to('/v2/models/i8/infer', 'many parameters', `{"parameters":{${names}},"inputs":[]}`),
    to('/v2/repository/models/i8/load', 'many parameters of a load', `{"parameters":{${names}}}`),
    to('/v2/repository/index', 'many values', `{"ready":[${Array(5e6).fill('1').join(',')}]}`),
  ];
}

/** Sends a request and notes what it costs until its answer has been read. */
export async function costOfTensors(server: MeteredServer, asked: DearTensors): Promise<Cost> {
  const { name, path, body, headers } = asked;
  const bytesBefore = server.residentBytes();
  server.resetPeak();
  const { mainNs: before } = await server.noted(true);
  const response = await fetch(server.url + path, {
    method: 'POST',
    body: body as Buffer<ArrayBuffer>,
    headers,
  });
  const answer = Buffer.from(await response.arrayBuffer());
  const { mainNs, holdNs } = await server.noted();
  return {
    name,
    // What is compressed is held to its real length.
    bodyBytes: Math.max(body.length, answer.length),
    status: response.status,
    answer: response.status === 200 ? '' : answer.toString(),
    admissionMs: (mainNs - before) / 1e6,
    holdMs: holdNs / 1e6,
    iterationMs: 0,
    fullMs: 0,
    memoryBytes: Math.max(0, server.peakBytes() - bytesBefore),
  };
}
