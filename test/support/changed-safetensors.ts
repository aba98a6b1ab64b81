import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { ConvertJob } from '../../engine/directory/convert-job.js';
import { convert } from '../../engine/executors/portable/convert/convert.js';
import { CheckpointError, type TensorLocation } from '../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { readSafetensors } from '../../models/checkpoints/safetensors.js';
import { safetensorsOf } from '../../tools/support/safetensors-writer.js';

/** A sentence: a file, a colon, words, one full stop at the end. */
const SENTENCE = /^\/[^\n]*: [^\n]*\.$/;

export const odd = fc.oneof(
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
export const headerChange = fc.record({
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

/** A tensor in the header of a safetensors file. */
export type Entry = { dtype: string; shape: number[]; data_offsets: [number, number] };

/** The header with some tensors changed. */
export function changedHeader(
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
export function fileOf(header: Record<string, Entry>, data: Buffer): Buffer {
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

/** The entries of a safetensors file, from the begin of its data on, and the data. */
export function readEntries(file: string): { header: Record<string, Entry>; data: Buffer } {
  const bytes = readFileSync(file);
  const data = bytes.subarray(8 + Number(bytes.readBigUInt64LE()));
  const begin = bytes.length - data.length;
  const entries = readSafetensors(file).map(({ name, type, shape, offset, byteLength }): [string, Entry] => [
    name,
    { dtype: type, shape, data_offsets: [offset - begin, offset - begin + byteLength!] },
  ]);
  return { header: Object.fromEntries(entries), data };
}

/**
 * Converts some tensors of what a folder opens to; true if it did, false if it is refused in a sentence.
 * @param chosen those of the checkpoint's tensors
 */
export function readsOrRefuses(
  folder: string,
  target: string,
  chosen: (tensors: readonly TensorLocation[]) => readonly TensorLocation[],
): boolean {
  let checkpoint: ReturnType<typeof openCheckpoint>;
  try {
    checkpoint = openCheckpoint(folder);
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    expect(error.message).toMatch(SENTENCE);
    return false;
  }
  for (const tensor of chosen([...checkpoint.tensors.values()])) {
    const { file, offset, byteLength, type, shape, quantized, interleavedHeads = 0, transposed } = tensor;
    const sizes = [shape.slice(0, -1).reduce((product, size) => product * size, 1), shape.at(-1)!];
    // Each element of a vector whose halves take turns counts as a row.
    const isTurned = transposed || (shape.length === 1 && interleavedHeads > 0);
    const [rows, columns] = (isTurned ? sizes.reverse() : sizes) as [number, number];
    writeFileSync(target, Buffer.alloc(4 * rows * columns));
    const source = { source: file, sourceOffset: offset, sourceByteLength: byteLength, type };
    const job: ConvertJob = {
      ...source,
      rows,
      columns,
      interleavedHeads,
      ...(transposed && { transposed }),
      ...(quantized && { quantized }),
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
