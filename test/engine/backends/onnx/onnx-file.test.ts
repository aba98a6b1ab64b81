import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { onnxFileValues } from '../../../../engine/backends/onnx/onnx-file.js';
import { onnxModel } from '../../../src/serving/support/onnx-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'skein-onnx-file-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, 'model.onnx');

const TENSOR = { tensor_type: { elem_type: 1, shape: { dim: [{ dim_param: 'n' }] } } };
const MAP = { map_type: { key_type: 8, value_type: { tensor_type: { elem_type: 1 } } } };

function read(bytes: Uint8Array) {
  writeFileSync(path, bytes);
  return onnxFileValues(path);
}

describe('what an ONNX file says of its inputs and outputs', () => {
  it('are types, and whether the number of dimensions is known', () => {
    const bytes = onnxModel(
      [
        { name: 'X', type: 'FP32', dims: ['n', 3] },
        { name: 'S', type: 'INT64', dims: [] },
        { name: 'Q', proto: { optional_type: { elem_type: TENSOR } } },
        { name: 'B', type: 16, dims: ['n'] },
      ],
      [
        { name: 'é/0:0', type: 'BYTES', dims: null },
        { name: 'Z', proto: { sequence_type: { elem_type: MAP } } },
        { name: 'F', type: 99, dims: [1] },
      ],
      [],
    );
    expect(read(bytes)).toEqual({
      inputs: [
        { name: 'X', type: 'tensor(float)', hasRank: true },
        { name: 'S', type: 'tensor(int64)', hasRank: true },
        { name: 'Q', type: 'optional(tensor(float))', hasRank: false },
        { name: 'B', type: 'tensor(bfloat16)', hasRank: true },
      ],
      outputs: [
        { name: 'é/0:0', type: 'tensor(string)', hasRank: false },
        { name: 'Z', type: 'seq(map(string,tensor(float)))', hasRank: false },
        { name: 'F', type: 'tensor(type 99)', hasRank: true },
      ],
    });
  });

  it('are found behind weights that are longer than what is read at a time', () => {
    const values = onnxModel([], [{ name: 'Y', type: 'FP32', dims: [1] }], []);
    const graphAt = values.indexOf(0x3a); // field 7, a span
    expect(graphAt).toBeGreaterThan(-1);
    const graph = values.subarray(graphAt + 2, graphAt + 2 + values[graphAt + 1]!);
    const weight = Buffer.alloc(300_000, 1);
    const initializer = Buffer.concat([Buffer.from([0x2a, ...varint(weight.length)]), weight]);
    const length = initializer.length + graph.length;
    const bytes = Buffer.concat([Buffer.from([0x08, 8, 0x3a, ...varint(length)]), initializer, graph]);
    expect(read(bytes).outputs).toEqual([{ name: 'Y', type: 'tensor(float)', hasRank: true }]);
  });

  it('are none where there is no such file, or it is something else', () => {
    const none = { inputs: [], outputs: [] };
    expect(onnxFileValues(join(folder, 'nowhere.onnx'))).toEqual(none);
    expect(onnxFileValues(folder)).toEqual(none);
    for (const text of [
      '',
      'this is no model',
      '\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01',
      '\x3a',
    ])
      expect(read(Buffer.from(text, 'latin1'))).toEqual(none);
    const nested = Array(40).reduce<object>((inner) => ({ sequence_type: { elem_type: inner } }), TENSOR);
    expect(() => read(onnxModel([{ name: 'N', proto: nested }], [], []))).not.toThrow();
  });

  it('are never an error, wherever the file ends', () => {
    const bytes = onnxModel([{ name: 'X', type: 'FP32', dims: ['n', 3] }], [], []);
    writeFileSync(path, bytes);
    for (let size = bytes.length; size > 0; size--) {
      truncateSync(path, size);
      expect(onnxFileValues(path).inputs.length).toBeLessThanOrEqual(1);
    }
  });
});

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 128);
  }
}
