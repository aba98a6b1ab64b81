import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { outermostKeys, readSafetensors } from '../../../models/checkpoints/safetensors.js';
import { readSafetensorsDirectory } from '../../../models/checkpoints/safetensors-directory.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { safetensorsBytes, safetensorsOf } from '../../../tools/support/safetensors-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const root = temporaryFolder('skein-safetensors');
let count = 0;

function folder(files: Record<string, string | Uint8Array>): string {
  const directory = join(root, `model-${count++}`);
  mkdirSync(directory);
  for (const [name, contents] of Object.entries(files)) writeFileSync(join(directory, name), contents);
  return directory;
}

function file(bytes: Uint8Array): string {
  return join(folder({ 'test.safetensors': bytes }), 'test.safetensors');
}

const tensor = (name: string, shape: number[], bytes: number, type = 'F32'): TestTensor => {
  return { name, shape, type, data: Buffer.alloc(bytes, 7) };
};
const a = tensor('a', [2, 3], 24);
const b = tensor('b', [5], 10, 'BF16');

describe('readSafetensors', () => {
  it('says where each tensor lies', () => {
    const bytes = safetensorsBytes([a, b, tensor('scalar', [], 2, 'F16'), tensor('none', [0, 4], 0)]);
    const data = 8 + bytes.readUInt32LE(0);
    const path = file(bytes);
    expect(readSafetensors(path)).toEqual([
      { name: 'a', type: 'F32', shape: [2, 3], file: path, offset: data, byteLength: 24 },
      { name: 'b', type: 'BF16', shape: [5], file: path, offset: data + 24, byteLength: 10 },
      { name: 'scalar', type: 'F16', shape: [], file: path, offset: data + 34, byteLength: 2 },
      { name: 'none', type: 'F32', shape: [0, 4], file: path, offset: data + 36, byteLength: 0 },
    ]);
  });

  const entry = (change: object) => (header: Record<string, unknown>) => {
    header.a = { ...(header.a as object), ...change };
  };
  const entries = (text: string) => safetensorsOf(text, Buffer.alloc(24));
  const length = (value: bigint) => {
    const bytes = Buffer.alloc(64);
    bytes.writeBigUInt64LE(value);
    return bytes;
  };
  const wrong: [string, Buffer, RegExp][] = [
    ['an empty file', Buffer.alloc(0), /0 bytes long, too short/],
    ['a header beyond the file', length(57n), /claims 57 bytes, but only 56 follow/],
    ['a header of 2^64 - 1 bytes', length(2n ** 64n - 1n), /claims/],
    ['no JSON', safetensorsOf('{"a":', Buffer.alloc(0)), /header: is not valid JSON/],
    ['no object', safetensorsOf('[1]', Buffer.alloc(0)), /should hold a JSON object/],
    ['deep nesting', safetensorsOf('['.repeat(200_000), Buffer.alloc(0)), /./],
    ['a tensor that is none', entries('{"a":7}'), /tensor a should be described by an object/],
    ['no dtype', safetensorsBytes([a], entry({ dtype: 4 })), /tensor a should have a dtype, found 4/],
    ['a negative shape', safetensorsBytes([a], entry({ shape: [-2, -3] })), /shape of whole numbers/],
    ['a broken shape', safetensorsBytes([a], entry({ shape: [1.5] })), /shape of whole numbers/],
    ['one offset', safetensorsBytes([a], entry({ data_offsets: [0] })), /two data_offsets/],
    ['backward offsets', safetensorsBytes([a], entry({ data_offsets: [24, 0] })), /run backwards/],
    [
      'offsets beyond the file',
      safetensorsBytes([a], entry({ data_offsets: [0, 25] })),
      /only 24; the file may be cut off\.$/,
    ],
    [
      'overflowing dimensions',
      safetensorsBytes([a], entry({ shape: [2 ** 40, 2 ** 40] })),
      /too many elements/,
    ],
    [
      'a shape of another size',
      safetensorsBytes([a], entry({ shape: [2, 2] })),
      /takes 16 bytes, but its data_offsets span 24/,
    ],
    [
      'a repeated name',
      entries(
        '{"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},"\\u0061":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}',
      ),
      /tensor a is there twice/,
    ],
    [
      'an overlap',
      entries(
        '{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}',
      ),
      /tensor b overlaps/,
    ],
    [
      'a gap',
      entries(
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}',
      ),
      /tensor b leaves a gap/,
    ],
    [
      'bytes after the last tensor',
      Buffer.concat([safetensorsBytes([a]), Buffer.alloc(1)]),
      /tensors end at byte/,
    ],
  ];
  for (const [what, bytes, message] of wrong) {
    it(`refuses ${what}`, () => {
      const path = file(bytes);
      expect(() => readSafetensors(path)).toThrow(CheckpointError);
      expect(() => readSafetensors(path)).toThrow(message);
      expect(() => readSafetensors(path)).toThrow(path);
    });
  }

  it('reads no more than its limit of a large file', () => {
    const path = file(length(2n ** 32n));
    truncateSync(path, 8 * 2 ** 30); // sparse
    expect(() => readSafetensors(path)).toThrow(/header is 4294967296 bytes long; at most 33554432 are read/);
    truncateSync(path, 0);
  });

  it('refuses every truncation of a file', () => {
    const whole = safetensorsBytes([a, b]);
    for (let length = 0; length < whole.length; length++) {
      const path = join(root, 'truncated.safetensors');
      writeFileSync(path, whole.subarray(0, length));
      expect(() => readSafetensors(path)).toThrow(CheckpointError);
    }
  });
});

describe('readSafetensorsDirectory', () => {
  const index = (map: unknown) => JSON.stringify({ weight_map: map });
  const one = 'model-00001-of-00002.safetensors';
  const two = 'model-00002-of-00002.safetensors';
  const shards = { [one]: safetensorsBytes([a]), [two]: safetensorsBytes([b]) };
  const INDEX = 'model.safetensors.index.json';
  const names = (directory: string) => readSafetensorsDirectory(directory).map(({ name }) => name);

  it('reads one file, shards with an index, and shards without', () => {
    expect(names(folder({ 'model.safetensors': safetensorsBytes([a, b]) }))).toEqual(['a', 'b']);
    expect(names(folder({ ...shards, [INDEX]: index({ a: one, b: two }) }))).toEqual(['a', 'b']);
    expect(names(folder(shards))).toEqual(['a', 'b']);
    expect(names(folder({}))).toEqual([]);
  });

  it('prefers model.safetensors to everything beside it', () => {
    const files = {
      'model.safetensors': safetensorsBytes([a]),
      'consolidated.safetensors': safetensorsBytes([a]),
    };
    expect(names(folder(files))).toEqual(['a']);
  });

  const wrong: [string, Record<string, string | Uint8Array>, RegExp][] = [
    [
      'a missing shard',
      { [one]: shards[one]!, [INDEX]: index({ a: one, b: two }) },
      /00002-of-00002|one of 2 shards/,
    ],
    [
      'a missing shard without an index',
      { [two]: shards[two]! },
      /: model-00001-of-00002\.safetensors of the model's 2 shards is missing\.$/,
    ],
    [
      'a tensor in two shards',
      { [one]: shards[one]!, [two]: safetensorsBytes([a]) },
      /tensor a is also in model-00001/,
    ],
    [
      'a tensor in the wrong shard',
      { ...shards, [INDEX]: index({ a: two, b: one }) },
      /tensor a should be in model-00002.*it is in model-00001/,
    ],
    [
      'a tensor in no shard',
      { ...shards, [INDEX]: index({ a: one, b: two, c: two }) },
      /tensor c should be in .* it is not there/,
    ],
    [
      'an index that leaves the folder',
      { ...shards, [INDEX]: index({ a: '../x.safetensors' }) },
      /of the same folder/,
    ],
    ['an index without a map', { ...shards, [INDEX]: '{}' }, /should have an object "weight_map"/],
    ['an index that is no JSON', { ...shards, [INDEX]: '{' }, /index\.json: is not valid JSON/],
  ];
  for (const [what, files, message] of wrong) {
    it(`refuses ${what}`, () => {
      const directory = folder(files);
      expect(() => readSafetensorsDirectory(directory)).toThrow(CheckpointError);
      expect(() => readSafetensorsDirectory(directory)).toThrow(message);
    });
  }
});

describe('outermostKeys', () => {
  it('gives the keys of any object, whatever lies inside', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const object = JSON.parse(JSON.stringify(value)) as object;
        expect(outermostKeys(JSON.stringify(value, null, 1)).sort()).toEqual(Object.keys(object).sort());
      }),
    );
    expect(outermostKeys('{"a":1,"a":{"b":["c","d"]},"e\\"":"f"}')).toEqual(['a', 'a', 'e"']);
  });
});
