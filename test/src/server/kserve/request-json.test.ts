import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Datatype } from '../../../../callbacks/infer/datatypes.js';
import { bytesOfJson, bytesOfList, mostBytesOf } from '../../../../src/server/kserve/json-tensors.js';
import { type ReadInfer, readInfer } from '../../../../src/server/kserve/read-infer.js';
import { readRequestJson } from '../../../../src/server/kserve/request-json.js';
import { RegionAccess } from '../../../../src/serving/protocol/region-access.js';
import { draws } from '../../../support/scale.js';

const encoder = new TextEncoder();
/** What makes a request long enough for its lists to be read in turns. */
const PADDING = ' '.repeat(2 ** 16);

const NO_REGIONS = new RegionAccess(null, 0, () => {});

async function read(text: string): Promise<ReadInfer & { isInTurns: boolean }> {
  const { value, lists } = await readRequestJson(encoder.encode(text));
  const { signal } = new AbortController();
  const found = readInfer('m', { body: value, lists, binary: new Uint8Array(), regions: NO_REGIONS, signal });
  for (const { tensor, count, list } of found.unread) {
    const wanted = { name: tensor.name, datatype: tensor.datatype, count };
    tensor.data = await bytesOfList(wanted, list);
    expect(tensor.data.length).toBeLessThanOrEqual(mostBytesOf(wanted, list));
  }
  return { ...found, isInTurns: lists !== null };
}

const request = (datatype: string, shape: readonly number[], data: string) =>
  `{"id":"7","inputs":[{"name":"A","shape":[${shape}],"datatype":"${datatype}","data":${data}}]}`;

/** The elements of the first input. */
async function dataOf(text: string): Promise<Uint8Array> {
  return (await read(text)).request.inputs[0]!.data;
}

const outcome = (text: string) =>
  dataOf(text).then(
    (data) => Buffer.from(data).toString('hex'),
    (error: { kind?: unknown }) => `refused: ${error.kind}`,
  );

/** Values of each type as JSON writes them, and some that are not of it. */
const VALUES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  BOOL: fc.boolean(),
  INT8: fc.integer({ min: -128, max: 127 }),
  INT32: fc.integer(),
  UINT16: fc.nat(65_535),
  INT64: fc.maxSafeInteger(),
  FP32: fc.float({ noNaN: true, noDefaultInfinity: true }),
  FP64: fc.double({ noNaN: true, noDefaultInfinity: true }),
  BYTES: fc.string({ unit: 'binary' }),
};
const wrong = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(-129, 0.5, '\ud800', {}));

const lists = fc.constantFrom(...Object.keys(VALUES)).chain((datatype) =>
  fc.record({
    datatype: fc.constant(datatype),
    values: fc.array(fc.oneof({ weight: 9, arbitrary: VALUES[datatype]! }, { weight: 1, arbitrary: wrong }), {
      maxLength: 12,
    }),
    rows: fc.integer({ min: 1, max: 4 }),
    more: fc.constantFrom(0, 0, 0, 1),
    indent: fc.constantFrom('', '\t', '\n '),
  }),
);

describe('a byte order mark in front', () => {
  it.each([
    ['a short request', ''],
    ['a long one', PADDING],
  ])('is left out of %s', async (_, padding) => {
    const mark = '\ufeff';
    const data = await dataOf(`${mark}${request('INT32', [2], `[1,2${padding}]`)}`);
    expect([...new Int32Array(data.buffer, data.byteOffset, 2)]).toEqual([1, 2]);
  });
});

describe('a request whose lists are read in turns', () => {
  it('is what the parser would have made of it', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(lists, async ({ datatype, values, rows, more, indent }) => {
        const size = Math.ceil(values.length / rows);
        const nested =
          rows === 1
            ? values
            : Array.from({ length: rows }, (_, i) => values.slice(i * size, (i + 1) * size));
        const text = request(datatype, [values.length + more], JSON.stringify(nested, null, indent));
        const whole = await outcome(text);
        expect(await outcome(text + PADDING)).toBe(whole);
        if (!whole.startsWith('refused')) taken++;
      }),
      { numRuns: draws(133) },
    );
    expect(taken).toBeGreaterThan(50);
  });

  it('is refused wherever the parser refuses it', async () => {
    const text = request('INT32', [2, 3], '[[1,2,3],[-4,5,60]]');
    await fc.assert(
      fc.asyncProperty(
        fc.nat(text.length - 1),
        fc.constantFrom(
          '',
          '[',
          ']',
          ',',
          '{',
          '}',
          '"',
          ':',
          '0',
          '-',
          '.',
          'e',
          ' ',
          '\\',
          '\u0000',
          'null',
        ),
        fc.nat(2),
        async (at, put, cut) => {
          const spoilt = text.slice(0, at) + put + text.slice(at + cut);
          const whole = await outcome(spoilt);
          const inTurns = await outcome(spoilt + PADDING);
          expect(inTurns).toBe(whole);
        },
      ),
      { numRuns: draws(100) },
    );
  });

  it('is found by its names, however they are spelt', async () => {
    const spelt = String.raw`{"\u0069nputs":[{"name":"A","shape":[2],"datatype":"INT8","d\u0061ta":[1,2]}]}`;
    expect([...(await dataOf(spelt + PADDING))]).toEqual([1, 2]);
  });

  it('may name what is no input', async () => {
    const others = `"parameters":{"data":"[","inputs":"x"},"data":[1],"more":{"inputs":[{"data":[5]}]}`;
    const text = request('INT8', [2], '[3,4]').replace('{"id"', `{${others},"id"`);
    expect([...(await dataOf(text + PADDING))]).toEqual([3, 4]);
  });

  it('counts the latest of two fields of a name, as the parser does', async () => {
    const twice = request('INT8', [2], '[3,4],"data":[5,6]');
    expect([...(await dataOf(twice))]).toEqual([5, 6]);
    expect([...(await dataOf(twice + PADDING))]).toEqual([5, 6]);
  });

  it('has 64-bit numbers to the last digit, short or long', async () => {
    const ends = ['-9223372036854775808', '9223372036854775807', '9007199254740993'];
    const bytes = await dataOf(request('INT64', [3], `[${ends}]`));
    expect([...new BigInt64Array(bytes.slice().buffer)].map(String)).toEqual(ends);
    expect(await outcome(request('UINT64', [1], '[18446744073709551615]'))).toBe('f'.repeat(16));
    for (const beyond of ['9223372036854775808', '-9223372036854775809', '1e19', '0.5']) {
      expect(await outcome(request('INT64', [1], `[${beyond}]`))).toBe('refused: invalid');
    }
  });

  it('has floats that JSON has no form for, as Python writes them', async () => {
    const bytes = await dataOf(request('FP32', [4], '[NaN, Infinity,-Infinity ,1]'));
    expect([...new Float32Array(bytes.slice().buffer)]).toEqual([
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1,
    ]);
    expect(await outcome(request('INT32', [1], '[NaN]'))).toBe('refused: invalid');
    expect(await outcome(request('FP32', [1], '[nan]'))).toBe('refused: invalid');
  });

  it('holds more elements than a body holds other values', async () => {
    const count = 600_000;
    const text = request('INT32', [count], `[${Array.from({ length: count }, (_, i) => i).join(',')}]`);
    const numbers = new Int32Array((await dataOf(text)).buffer);
    expect(numbers.length).toBe(count);
    expect(numbers.every((number, i) => number === i)).toBe(true);
    const most = 500_000;
    const texts = request('BYTES', [most], `[${'"",'.repeat(most - 1)}"\\u00e9"]`);
    const bytes = await dataOf(texts);
    expect(bytes.length).toBe(4 * most + 2);
    expect([...bytes.subarray(-6)]).toEqual([2, 0, 0, 0, 0xc3, 0xa9]);
  });

  it('is bounded beside its lists', async () => {
    const text = request('INT8', [1], '[1]').replace('"7"', `"${'x'.repeat(2 ** 20)}"`);
    await expect(read(text)).rejects.toThrow('longer than 1048576 bytes without them');
    const deep = request('INT8', [1], `${'['.repeat(5000)}1${']'.repeat(5000)}`);
    await expect(read(deep)).rejects.toThrow('levels deep');
    await expect(read(deep + PADDING)).rejects.toThrow('nested more than 200');
  });
});

describe('a shape that is not that of its data', () => {
  it.each([2 ** 31, 2 ** 52])('makes no room for %i elements', (count) => {
    const wanted = { name: 'A', datatype: 'FP64' as Datatype, count };
    expect(() => bytesOfJson(wanted, [1])).toThrow('Shape does not match');
  });

  it('is refused in turns too', async () => {
    for (const shape of [[2 ** 31], [2 ** 26, 2 ** 26], [0]]) {
      const text = request('FP64', shape, '[1,2,3]') + PADDING;
      await expect(dataOf(text)).rejects.toThrow('Shape does not match');
    }
  });
});
