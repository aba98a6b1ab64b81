import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConvertJob } from '../../../../engine/directory/convert-job.js';
import { convert } from '../../../../engine/executors/portable/convert/convert.js';
import { CheckpointError } from '../../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../../models/checkpoints/open-checkpoint.js';
import { readSafetensors } from '../../../../models/checkpoints/safetensors.js';
import { safetensorsOf } from '../../../../tools/support/safetensors-writer.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { writeQuantizedModel } from '../../../support/quantized-models.js';
import { draws } from '../../../support/scale.js';

const root = temporaryFolder('skein-quantized-fuzz');
/** Of each form; SKEIN_TEST_DRAWS=5 makes them 2,000. */
const MUTATIONS = 400;

/** A sentence: a file, a colon, words, one full stop at the end. */
const SENTENCE = /^\/[^\n]*: [^\n]*\.$/;

const odd = fc.oneof(
  fc.constantFrom(
    null,
    -1,
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    2 ** 31,
    2 ** 53,
    1e300,
    '',
    'gemm',
    'group',
    [],
    {},
    true,
  ),
  fc.nat(256),
  fc.jsonValue({ maxDepth: 1 }),
);

/** A change of a tensor's entry in the header, by its place among the tensors. */
const headerChange = fc.record({
  tensor: fc.nat(63),
  change: fc.oneof(
    fc.record({
      dtype: fc.constantFrom('I32', 'I64', 'U8', 'I8', 'F8_E4M3', 'F8_E8M0', 'F8_E5M2', 'F32', 'F16', 'BF16'),
    }),
    fc.record({
      shape: fc.array(fc.oneof(fc.nat(130), fc.constantFrom(2 ** 20, 2 ** 31, 2 ** 40)), { maxLength: 4 }),
    }),
    fc.constant('removed' as const),
    fc.constant('turned' as const),
    fc.constant('same bytes, other type' as const),
  ),
});

const SAME_SIZE: Readonly<Record<string, string>> = {
  I32: 'F32',
  F32: 'I32',
  F16: 'BF16',
  BF16: 'F16',
  U8: 'I8',
  I8: 'U8',
  F8_E4M3: 'F8_E5M2',
};

type Entry = { dtype: string; shape: number[]; data_offsets: [number, number] };

function changedHeader(
  header: Record<string, Entry>,
  changes: readonly { tensor: number; change: object | string }[],
): Record<string, Entry> {
  const copy = structuredClone(header);
  for (const { tensor, change } of changes) {
    const names = Object.keys(copy);
    const name = names[tensor % names.length]!;
    const entry = copy[name]!;
    if (change === 'removed') delete copy[name];
    else if (change === 'turned') entry.shape.reverse();
    else if (typeof change === 'string') entry.dtype = SAME_SIZE[entry.dtype] ?? entry.dtype;
    else Object.assign(entry, change);
  }
  return copy;
}

/** Gives each tensor the bytes that it has, one after another: what is removed leaves no gap. */
function fileOf(header: Record<string, Entry>, data: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  const placed = Object.entries(header).map(
    ([
      name,
      {
        data_offsets: [begin, end],
        ...entry
      },
    ]) => {
      parts.push(data.subarray(begin, end));
      const offsets = [at, at + end - begin];
      at += end - begin;
      return [name, { ...entry, data_offsets: offsets }];
    },
  );
  return safetensorsOf(JSON.stringify(Object.fromEntries(placed)), Buffer.concat(parts));
}

/** Converts what a folder opens to; true if it did. */
function readsOrRefuses(folder: string): boolean {
  let checkpoint: ReturnType<typeof openCheckpoint>;
  try {
    checkpoint = openCheckpoint(folder);
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    expect(error.message).toMatch(SENTENCE);
    return false;
  }
  const jobs = [...checkpoint.tensors.values()]
    .filter(({ quantized }) => quantized !== undefined)
    .slice(0, 1);
  for (const { file, offset, byteLength, type, shape, quantized } of jobs) {
    const columns = shape.at(-1)!;
    const rows = shape.slice(0, -1).reduce((product, size) => product * size, 1);
    const target = join(root, 'target.bin');
    writeFileSync(target, Buffer.alloc(4 * rows * columns));
    const source = { source: file, sourceOffset: offset, sourceByteLength: byteLength, type };
    const job: ConvertJob = {
      ...source,
      rows,
      columns,
      interleavedHeads: 0,
      quantized: quantized!,
      targetOffset: 0,
      targetType: 'f32',
    };
    try {
      convert(target, [job], 1);
    } catch (error) {
      expect((error as Error).message).toMatch(SENTENCE);
      return false;
    }
  }
  return true;
}

describe.each([
  'fp8-blocks',
  'fp8-experts',
  'ct-int4-zeros',
  'ct-nvfp4',
  'gptq-order',
  'gptq-8',
  'awq',
  'mxfp4',
])('a changed model of %s', (name) => {
  const folder = writeQuantizedModel(join(root, name), name);
  const file = join(folder, 'model.safetensors');
  const bytes = readFileSync(file);
  const data = bytes.subarray(8 + Number(bytes.readBigUInt64LE()));
  const begin = bytes.length - data.length;
  const header = Object.fromEntries(
    readSafetensors(file).map(({ name: tensor, type, shape, offset, byteLength }): [string, Entry] => [
      tensor,
      { dtype: type, shape, data_offsets: [offset - begin, offset - begin + byteLength!] },
    ]),
  );
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));

  it('is read or refused in a sentence', () => {
    const keys = Object.keys(config.quantization_config);
    const mutation = fc.record({
      header: fc.array(headerChange, { maxLength: 2 }),
      config: fc.dictionary(fc.constantFrom(...keys), odd, { maxKeys: 1 }),
      bytes: fc.array(fc.tuple(fc.nat(data.length - 1), fc.nat(255)), { maxLength: 3 }),
    });
    const reached = { read: 0, refused: 0 };
    fc.assert(
      fc.property(mutation, (change) => {
        const copy = Buffer.from(data);
        for (const [at, value] of change.bytes) copy[at] = value;
        writeFileSync(file, fileOf(changedHeader(header, change.header), copy));
        const quantization = { ...config.quantization_config, ...change.config };
        writeFileSync(
          join(folder, 'config.json'),
          JSON.stringify({ ...config, quantization_config: quantization }),
        );
        reached[readsOrRefuses(folder) ? 'read' : 'refused']++;
      }),
      { numRuns: draws(MUTATIONS) },
    );
    expect(reached.read).toBeGreaterThan(0);
    expect(reached.refused).toBeGreaterThan(0);
  });
});
