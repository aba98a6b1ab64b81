import * as fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { packElements } from '../../../../../callbacks/infer/byte-elements.js';
import type { Datatype } from '../../../../../callbacks/infer/datatypes.js';
import { bytesOfContents, mostBytesOf } from '../../../../../src/server/grpc/infer/typed-contents.js';
import { INFERENCE_SCHEMA } from '../../../../../src/server/grpc/schema/inference-schema.js';

const contentsType = protobuf
  .parse(INFERENCE_SCHEMA, { keepCase: true })
  .root.lookupType('inference.InferTensorContents');
const encoded = (fields: object) => contentsType.encode(contentsType.fromObject(fields)).finish();

const read = (datatype: Datatype, contents: Uint8Array, count: number, signal?: AbortSignal) =>
  bytesOfContents({ model: 'm', name: 'X', datatype, count }, contents, signal);

const bytesOf = (array: ArrayBufferView) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
const big = (least: bigint, most: bigint) => fc.bigInt({ min: least, max: most });
const whole = (min: number, max: number) => fc.integer({ min, max });

interface Kind {
  /** The field of its elements. */
  field: string;
  /** Values as the library takes them. */
  values: fc.Arbitrary<unknown>;
  /** How they lie in memory. */
  inMemory(values: readonly unknown[]): Uint8Array;
}

function kind<T>(field: string, values: fc.Arbitrary<T>, inMemory: (values: T[]) => Uint8Array): Kind {
  return { field, values, inMemory: inMemory as Kind['inMemory'] };
}

const KINDS: readonly [Datatype, Kind][] = [
  ['BOOL', kind('bool_contents', fc.boolean(), (all) => Uint8Array.from(all, Number))],
  ['INT8', kind('int_contents', whole(-128, 127), (all) => bytesOf(Int8Array.from(all)))],
  ['INT16', kind('int_contents', whole(-(2 ** 15), 2 ** 15 - 1), (all) => bytesOf(Int16Array.from(all)))],
  ['INT32', kind('int_contents', whole(-(2 ** 31), 2 ** 31 - 1), (all) => bytesOf(Int32Array.from(all)))],
  [
    'INT64',
    kind('int64_contents', big(-(2n ** 63n), 2n ** 63n - 1n), (all) => bytesOf(BigInt64Array.from(all))),
  ],
  ['UINT8', kind('uint_contents', whole(0, 255), (all) => Uint8Array.from(all))],
  ['UINT16', kind('uint_contents', whole(0, 2 ** 16 - 1), (all) => bytesOf(Uint16Array.from(all)))],
  ['UINT32', kind('uint_contents', whole(0, 2 ** 32 - 1), (all) => bytesOf(Uint32Array.from(all)))],
  ['UINT64', kind('uint64_contents', big(0n, 2n ** 64n - 1n), (all) => bytesOf(BigUint64Array.from(all)))],
  ['FP32', kind('fp32_contents', fc.float(), (all) => bytesOf(Float32Array.from(all)))],
  ['FP64', kind('fp64_contents', fc.double(), (all) => bytesOf(Float64Array.from(all)))],
  ['BYTES', kind('bytes_contents', fc.uint8Array({ maxLength: 9 }), packElements)],
];

describe('elements by their types', () => {
  it.each(KINDS)('of %s are the bytes of a tensor', async (datatype, { field, values: value, inMemory }) => {
    const property = fc.asyncProperty(fc.array(value, { maxLength: 20 }), async (values) => {
      const plain = values.map((one) => (typeof one === 'bigint' ? String(one) : one));
      const contents = encoded({ [field]: plain });
      const bytes = await read(datatype, contents, values.length);
      expect(Buffer.from(bytes).toString('hex')).toBe(Buffer.from(inMemory(values)).toString('hex'));
      const most = mostBytesOf({ model: 'm', name: 'X', datatype, count: values.length }, contents);
      expect(bytes.length).toBeLessThanOrEqual(most);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  it('may come one by one, and in several lists', async () => {
    // int_contents is field 2: 1, then a list of 2 and 3, then 4.
    expect(await read('INT8', Buffer.from('1001' + '12020203' + '1004', 'hex'), 4)).toEqual(
      Uint8Array.of(1, 2, 3, 4),
    );
    // fp32_contents is field 6: one, then a list of one.
    const [one, two] = [bytesOf(Float32Array.of(1)), bytesOf(Float32Array.of(2))];
    const floats = Buffer.concat([Buffer.from('35', 'hex'), one, Buffer.from('3204', 'hex'), two]);
    expect(Buffer.from(await read('FP32', floats, 2))).toEqual(Buffer.concat([one, two]));
  });

  it('are as many as there are, where the shape has more: whoever compares says so', async () => {
    expect(await read('INT32', encoded({ int_contents: [1] }), 1_000_000)).toHaveLength(4);
    expect(await read('FP16', new Uint8Array(), 3)).toHaveLength(0);
  });

  const mismatch = (type: string, expected: string) =>
    `unexpected explicit tensor data for input tensor 'X' for model 'm' of type '${type}', expected datatype '${expected}'`;
  it.each([
    ['of another type', 'INT32', { fp32_contents: [1] }, 1, mismatch('FP32', 'INT32')],
    ['of a type that comes raw alone', 'FP16', { fp32_contents: [1] }, 1, mismatch('FP32', 'FP16')],
    ['of another type, of texts', 'BYTES', { int_contents: [1] }, 1, mismatch('INT32', 'BYTES')],
    ['texts of another type', 'INT32', { bytes_contents: [Buffer.from('a')] }, 1, mismatch('BYTES', 'INT32')],
    [
      'of two types',
      'INT32',
      { int_contents: [1], uint_contents: [1] },
      2,
      'binary data was already supplied',
    ],
    ['more than the shape says', 'INT32', { int_contents: [1, 2, 3] }, 2, 'Expected 8, got more'],
    ['more floats than the shape says', 'FP32', { fp32_contents: [1, 2, 3] }, 2, 'Expected 8, got more'],
    [
      'more texts than the shape says',
      'BYTES',
      { bytes_contents: ['', ''].map(Buffer.from) },
      1,
      'elements 2 for',
    ],
    ['beyond their type', 'INT8', { int_contents: [128] }, 1, '128 is not of type INT8'],
    ['below their type', 'UINT8', { uint_contents: [256] }, 1, '256 is not of type UINT8'],
  ] as const)('are refused %s', async (_, datatype, fields, count, message) => {
    await expect(read(datatype, encoded(fields), count)).rejects.toThrow(message);
  });

  it.each([
    ['a list that ends in a number', '120180'],
    ['a list that goes on behind the end', '1205'],
    ['a list of a part of a float', '3203000000'],
    ['a text that goes on behind the end', '4205aa'],
    ['a number of eleven bytes', '10ffffffffffffffffffffff01'],
    ['a field that there is not', '9a0100'],
    ['texts as a number', '4001'],
  ])('are none: %s', async (_, hex) => {
    const datatype = hex.startsWith('3') ? 'FP32' : hex.startsWith('4') ? 'BYTES' : 'INT32';
    await expect(read(datatype, Buffer.from(hex, 'hex'), 100)).rejects.toThrow(/^Unable to parse request/);
  });

  it('take no memory for a shape that says more than there is', () => {
    const wanted = { model: 'm', name: 'X', datatype: 'INT64', count: 2 ** 52 } as const;
    expect(mostBytesOf(wanted, new Uint8Array(100))).toBe(800);
  });

  it('are read in turns with others, and not to their end where the client leaves', async () => {
    const contents = encoded({ int_contents: Array<number>(200_000).fill(1) });
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const next = () => setImmediate(() => turns++ < 1e6 && next());
    next();
    await read('INT32', contents, 200_000);
    expect(turns).toBeGreaterThan(5);
    clearInterval(timer);
    turns = 1e6;
    const leaving = new AbortController();
    const reading = read('INT32', contents, 200_000, leaving.signal);
    leaving.abort(new DOMException('gone', 'AbortError'));
    await expect(reading).rejects.toThrow('gone');
  });
});
