import { truncateSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { EngineTensor, WeightPrecision } from '../../../../engine/directory/engine-directory.js';
import { WeightReader } from '../../../../engine/executors/portable/weights/weight-reader.js';
import { type TinyNetwork, TinyNetworks } from '../../../../tools/support/tiny-network.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

function reading<T>(tiny: TinyNetwork, read: (reader: WeightReader) => T): T {
  const reader = new WeightReader(tiny);
  try {
    return read(reader);
  } finally {
    reader.close();
  }
}

describe.each<WeightPrecision>(['f32', 'bf16', 'int8', 'int4'])('weights in %s', (precision) => {
  it('are read as the values that they stand for', () => {
    // Rows of 50 end inside a group of 32.
    const tiny = networks.make({ precision, hiddenSize: 50, bias: true });
    reading(tiny, (reader) => {
      for (const [name, values] of tiny.weights) expect(reader.read(name), name).toEqual(values);
    });
  });

  it('are read by rows, into memory that there is', () => {
    const tiny = networks.make({ precision, hiddenSize: 50 });
    const expected = tiny.weights.get('embedding')!.subarray(7 * 50, 12 * 50);
    const memory = new Float32Array(400).fill(9);
    reading(tiny, (reader) => reader.read('embedding', { first: 7, count: 5 }, memory.subarray(50, 300)));
    expect(memory.subarray(50, 300)).toEqual(expected);
    expect([memory[49], memory[300]]).toEqual([9, 9]);
  });
});

it('weights in superblocks are read by rows, also where a stack is stored in several precisions', () => {
  const shape = { hiddenSize: 256, intermediateSize: 256, headDim: 64, numLayers: 1 };
  const tiny = networks.make({ precision: 'mixed', ...shape });
  const bytes = (values: Float32Array) => Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  reading(tiny, (reader) => {
    for (const [name, values] of tiny.weights)
      expect(bytes(reader.read(name)).equals(bytes(values)), name).toBe(true);
    const whole = tiny.weights.get('layers.0.qkv')!;
    const border = Math.floor((whole.length / 256) * (2 / 3));
    const across = reader.read('layers.0.qkv', { first: border - 3, count: 7 });
    expect(bytes(across).equals(bytes(whole.subarray((border - 3) * 256, (border + 4) * 256)))).toBe(true);
  });
});

it('weights are whole where a tensor is read in several pieces of the file', () => {
  const tiny = networks.make({ vocabSize: 26_000 });
  const values = reading(tiny, (reader) => reader.read('embedding'));
  const differs = tiny.weights.get('embedding')!.findIndex((value, i) => value !== values[i]);
  expect(differs).toBe(-1);
});

describe('weights that are not those of the plan', () => {
  const changed = (tiny: TinyNetwork, name: string, changes: Partial<EngineTensor>) => ({
    ...tiny,
    tensors: tiny.tensors.map((tensor) => (tensor.name === name ? { ...tensor, ...changes } : tensor)),
  });

  it.each<[string, Partial<EngineTensor>, RegExp]>([
    ['embedding', { name: 'other' }, /has no tensor embedding, which the plan needs\.$/],
    ['embedding', { rows: 7 }, /tensor embedding is \[7 x 48\], but the plan expects \[131 x 48\]\.$/],
    ['norm', { dtype: 'bf16' }, /tensor norm is a vector and must be f32\.$/],
    ['embedding', { byteLength: 5 }, /tensor embedding takes 25152 bytes, but its entry says 5\.$/],
    [
      'embedding',
      { offset: 3 },
      /must lie within the file at a multiple of 64, but its 25152 bytes begin at 3/,
    ],
    ['embedding', { offset: 64_000_000 }, /begin at 64000000 and the file has \d+\.$/],
  ])('are refused: %s with %o', (name, changes, sentence) => {
    const tiny = networks.make();
    expect(() => new WeightReader(changed(tiny, name, changes))).toThrow(sentence);
  });

  it('are refused where the file cannot be read', () => {
    expect(() => new WeightReader({ ...networks.make({}), weightsFile: '/nowhere/weights.bin' })).toThrow(
      '/nowhere/weights.bin cannot be read: there is no such file.',
    );
  });

  it('are refused where the file ends after it was opened', () => {
    const tiny = networks.make();
    reading(tiny, (reader) => {
      truncateSync(tiny.weightsFile, 100);
      expect(() => reader.read('embedding')).toThrow('ends at byte 100, within its tensors');
    });
  });

  it('are refused by name and by rows', () => {
    reading(networks.make(), (reader) => {
      expect(() => reader.read('nothing')).toThrow('The plan has no weight nothing.');
      expect(() => reader.read('embedding', { first: 130, count: 2 })).toThrow(
        'Rows 130 to 132 of tensor embedding [131 x 48] do not fill 96 values.',
      );
    });
  });
});
