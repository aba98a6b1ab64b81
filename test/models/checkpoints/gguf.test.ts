import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gguf as referenceReader } from '@huggingface/gguf';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { readGguf } from '../../../models/checkpoints/gguf.js';
import { huggingFaceTensorName } from '../../../models/checkpoints/gguf-tensor-names.js';
import { findModelFiles } from '../../../models/checkpoints/model-files.js';
import { GGUF_TYPES, GgufWriter, ggufBytes, type TestTensor } from '../../../tools/support/gguf-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { describeWithTestModel, testModelPath } from '../../support/test-model.js';

const directory = temporaryFolder('skein-gguf');

function file(bytes: Uint8Array): string {
  const path = join(directory, 'test.gguf');
  writeFileSync(path, bytes);
  return path;
}

const tensor = (name: string, shape: number[], bytes: number, type = 'F32'): TestTensor => {
  return { name, shape, type, data: Buffer.alloc(bytes, 7) };
};

describe('readGguf', () => {
  for (const version of [2, 3]) {
    it(`reads every type of value of version ${version}`, () => {
      const bytes = ggufBytes(
        {
          u8: { type: 'u8', value: 255 },
          i8: { type: 'i8', value: -128 },
          u16: { type: 'u16', value: 65_535 },
          i16: { type: 'i16', value: -2 },
          u32: { type: 'u32', value: 4_294_967_295 },
          i32: { type: 'i32', value: -3 },
          f32: { type: 'f32', value: 0.5 },
          f64: { type: 'f64', value: 1e300 },
          yes: { type: 'bool', value: true },
          text: { type: 'string', value: 'Gänse 🪿' },
          u64: { type: 'u64', value: 2n ** 53n - 1n },
          large: { type: 'u64', value: 2n ** 64n - 1n },
          i64: { type: 'i64', value: -5 },
          strings: { type: 'array', of: 'string', value: ['a', '', 'c'] },
          floats: { type: 'array', of: 'f32', value: [1, 2.5] },
          flags: { type: 'array', of: 'bool', value: [true, false] },
          empty: { type: 'array', of: 'string', value: [] },
          nested: {
            type: 'array',
            of: 'array',
            value: [
              { type: 'array', of: 'i16', value: [1, -1] },
              { type: 'array', of: 'string', value: ['x'] },
            ],
          },
        },
        [],
        { version },
      );
      const { metadata } = readGguf(file(bytes));
      expect(Object.fromEntries(metadata)).toEqual({
        u8: 255,
        i8: -128,
        u16: 65_535,
        i16: -2,
        u32: 4_294_967_295,
        i32: -3,
        f32: 0.5,
        f64: 1e300,
        yes: true,
        text: 'Gänse 🪿',
        u64: 2 ** 53 - 1,
        large: 2n ** 64n - 1n,
        i64: -5,
        strings: ['a', '', 'c'],
        floats: Float32Array.of(1, 2.5),
        flags: [true, false],
        empty: [],
        nested: [Int16Array.of(1, -1), ['x']],
      });
      expect(metadata.numbers('floats')).toEqual(Float32Array.of(1, 2.5));
      expect(() => metadata.number('text')).toThrow(/metadata key text should be a number, found a string/);
      expect(() => metadata.number('large')).toThrow(CheckpointError);
      expect(() => metadata.strings('floats')).toThrow(/array of strings, found Float32\[2\]/);
      expect(metadata.string('nowhere')).toBeUndefined();
    });
  }

  it('places tensors by the alignment, with shapes outermost first', () => {
    const tensors = [tensor('a', [2, 3], 24), tensor('b', [3, 32], 102, 'Q8_0'), tensor('c', [5], 10, 'F16')];
    const bytes = ggufBytes({ 'general.alignment': { type: 'u32', value: 128 } }, tensors, {
      alignment: 128,
    });
    const { tensors: found } = readGguf(file(bytes));
    expect(found.map(({ name, shape, type, byteLength }) => [name, shape, type, byteLength])).toEqual([
      ['a', [2, 3], 'F32', 24],
      ['b', [3, 32], 'Q8_0', 102],
      ['c', [5], 'F16', 10],
    ]);
    for (const { offset } of found) {
      expect(offset % 128).toBe(0);
      expect(bytes.subarray(offset, offset + 10).every((byte) => byte === 7)).toBe(true);
    }
    expect(bytes.length).toBe(found[2]!.offset + 10);
  });

  it('lets tensors of unknown types lie there', () => {
    const { tensors } = readGguf(file(ggufBytes({}, [tensor('ids', [2], 8, 'I32')])));
    expect(tensors[0]).toMatchObject({ type: 'I32', byteLength: null });
  });

  const whole = ggufBytes({ key: { type: 'string', value: 'value' } }, [tensor('a', [4, 4], 64)]);
  const header = () => new GgufWriter();
  const depth5 = header().header(0, 1).string('deep').u32(GGUF_TYPES.array);
  for (let i = 0; i < 5; i++) depth5.u32(GGUF_TYPES.array).u64(1);

  const wrong: [string, Buffer, RegExp][] = [
    ['an empty file', Buffer.alloc(0), /0 bytes long, too short/],
    ['another format', Buffer.alloc(64, 'x'), /does not begin with "GGUF"/],
    ['version 1', header().header(0, 0, 1).bytes(), /version 1; supported: 2, 3/],
    ['big endian', header().header(0, 0, 0x03000000).bytes(), /big endian/],
    [
      'too many tensors',
      header()
        .header(2n ** 40n, 0)
        .bytes(),
      /number of tensors is 1099511627776/,
    ],
    [
      'too many keys',
      header()
        .header(0, 2n ** 64n - 1n)
        .bytes(),
      /number of metadata keys/,
    ],
    ['a key beyond the file', header().header(0, 1).u64(1000).bytes(), /metadata key 0 takes 1000 bytes/],
    [
      'a key of 2^63 bytes',
      header()
        .header(0, 1)
        .u64(2n ** 63n)
        .bytes(),
      /larger than any file/,
    ],
    [
      'a repeated key',
      header().header(0, 2).pair('k', { type: 'u8', value: 1 }).pair('k', { type: 'u8', value: 2 }).bytes(),
      /key k is there twice/,
    ],
    [
      'an unknown value type',
      header().header(0, 1).string('k').u32(99).bytes(),
      /type 99, which GGUF does not/,
    ],
    [
      'a huge array of numbers',
      header()
        .header(0, 1)
        .string('k')
        .u32(9)
        .u32(12)
        .u64(2n ** 50n)
        .bytes(),
      /beyond the file/,
    ],
    [
      'a huge array of strings',
      header()
        .header(0, 1)
        .string('k')
        .u32(9)
        .u32(8)
        .u64(2n ** 50n)
        .bytes(),
      /claims 1125899906842624 items/,
    ],
    [
      'an array of unknown items',
      header().header(0, 1).string('k').u32(9).u32(77).u64(1).raw(Buffer.alloc(64)).bytes(),
      /type 77/,
    ],
    ['deep nesting', depth5.raw(Buffer.alloc(64)).bytes(), /deeper than 4/],
    [
      'too many dimensions',
      header().header(1, 0).tensorInfo('t', [1, 1, 1, 1, 1], 0, 0).bytes(),
      /5 dimensions/,
    ],
    [
      'overflowing dimensions',
      header()
        .header(1, 0)
        .tensorInfo('t', [2 ** 40, 2 ** 40], 0, 0)
        .align(32)
        .bytes(),
      /too many elements/,
    ],
    [
      'broken blocks',
      header().header(1, 0).tensorInfo('t', [2, 20], 8, 0).align(32).bytes(),
      /rows of 20 elements, which are no whole blocks of Q8_0/,
    ],
    [
      'a crooked offset',
      header().header(1, 0).tensorInfo('t', [1], 0, 4).align(32).raw(Buffer.alloc(64)).bytes(),
      /offset 4, no multiple of the alignment 32/,
    ],
    [
      'overlapping tensors',
      header()
        .header(2, 0)
        .tensorInfo('a', [16], 0, 0)
        .tensorInfo('b', [4], 0, 32)
        .align(32)
        .raw(Buffer.alloc(64))
        .bytes(),
      /tensor b begins at byte \d+, inside tensor a/,
    ],
    [
      'a repeated tensor',
      header()
        .header(2, 0)
        .tensorInfo('a', [1], 0, 0)
        .tensorInfo('a', [1], 0, 32)
        .align(32)
        .raw(Buffer.alloc(64))
        .bytes(),
      /tensor a is there twice/,
    ],
    [
      'an alignment that is none',
      ggufBytes({ 'general.alignment': { type: 'u32', value: 48 } }, []),
      /power of two up to 65536, found 48/,
    ],
    [
      'a truncated file',
      whole.subarray(0, whole.length - 1),
      /tensor a of type F32 .* the file is \d+ bytes long; it may be cut off\.$/,
    ],
  ];
  for (const [what, bytes, message] of wrong) {
    it(`refuses ${what}`, () => {
      const path = file(bytes);
      expect(() => readGguf(path)).toThrow(CheckpointError);
      expect(() => readGguf(path)).toThrow(message);
      expect(() => readGguf(path)).toThrow(path);
    });
  }

  it('refuses every truncation of a file', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => readGguf(file(whole.subarray(0, length)))).toThrow(CheckpointError);
    }
    expect(readGguf(file(whole)).tensors.length).toBe(1);
  });

  it('reads no more than its limit of a large file', () => {
    const path = file(
      new GgufWriter()
        .header(0, 1)
        .u64(2 ** 32)
        .bytes(),
    );
    truncateSync(path, 8 * 2 ** 30); // sparse
    expect(() => readGguf(path)).toThrow(
      /takes 4294967296 bytes at byte 32, which is beyond a header of 134217728/,
    );
    truncateSync(path, 0);
  });

  it('says what cannot be opened', () => {
    expect(() => readGguf(join(directory, 'nowhere.gguf'))).toThrow(/nowhere\.gguf: no such file/);
    expect(() => readGguf(directory)).toThrow(/not a regular file/);
  });
});

describe('huggingFaceTensorName', () => {
  it('translates the names of the Llama family and leaves others alone', () => {
    expect(huggingFaceTensorName('token_embd.weight')).toBe('model.embed_tokens.weight');
    expect(huggingFaceTensorName('output.weight')).toBe('lm_head.weight');
    expect(huggingFaceTensorName('blk.12.attn_q.bias')).toBe('model.layers.12.self_attn.q_proj.bias');
    expect(huggingFaceTensorName('blk.0.ffn_down.weight')).toBe('model.layers.0.mlp.down_proj.weight');
    for (const name of [
      'rope_freqs.weight',
      'blk.01.attn_q.weight',
      'blk.0.output.weight',
      'attn_q.weight',
      'x',
    ]) {
      expect(huggingFaceTensorName(name)).toBe(name);
    }
  });
});

describeWithTestModel('readGguf on the real model', () => {
  it('agrees with @huggingface/gguf in every key and tensor', async () => {
    const [path] = findModelFiles(testModelPath!).weights;
    const found = readGguf(path!);
    const reference = await referenceReader(path!, { allowLocalFile: true });
    const { version, tensor_count: _t, kv_count: _k, ...pairs } = reference.metadata;
    expect(found.version).toBe(version);
    const plain = (value: unknown) =>
      JSON.parse(
        JSON.stringify(value, (_key, item) =>
          ArrayBuffer.isView(item)
            ? [...(item as Int32Array)]
            : typeof item === 'bigint'
              ? Number(item)
              : item,
        ),
      );
    expect(plain(Object.fromEntries(found.metadata))).toEqual(plain(pairs));
    expect(found.tensors.map(({ name, shape, offset }) => ({ name, shape, offset }))).toEqual(
      reference.tensorInfos.map(({ name, shape, offset }) => ({
        name,
        shape: shape.map(Number).reverse(),
        offset: Number(reference.tensorDataOffset + offset),
      })),
    );
  });
});
