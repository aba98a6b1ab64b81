import type { ConvertJob } from '../../../directory/convert-job.js';
import { isMade, storedBytes, TENSOR_PRECISIONS } from '../../../directory/weight-blocks.js';
import { exactConversion } from './exact-conversion.js';
import type { PositionedFile } from './positioned-file.js';
import { type StorageType, storageTypeOf } from './tensor-types.js';

const MAX_COLUMNS = 2 ** 24;
const MAX_ROWS = 2 ** 32;

/** Checks the fields of a job without looking at files, and returns the type of its source. @throws TypeError */
export function checkFields(job: ConvertJob): StorageType {
  if (typeof job !== 'object' || job === null) throw new TypeError('convert: a job should be an object.');
  for (const key of ['source', 'type', 'targetType'] as const) {
    if (typeof job[key] !== 'string') throw new TypeError(`convert: ${key} should be a string.`);
  }
  for (const key of [
    'sourceOffset',
    'sourceByteLength',
    'rows',
    'columns',
    'interleavedHeads',
    'targetOffset',
  ] as const) {
    if (!(Number.isSafeInteger(job[key]) && job[key] >= 0))
      throw new TypeError(`convert: ${key} should be a whole number >= 0.`);
  }
  const type = storageTypeOf(job.type);
  if (type === undefined) throw new TypeError(`${job.source}: tensor type ${job.type} is not known.`);
  if (!TENSOR_PRECISIONS.includes(job.targetType)) {
    throw new TypeError(
      `convert: targetType should be ${TENSOR_PRECISIONS.slice(0, -1).join(', ')} or ${TENSOR_PRECISIONS.at(-1)}, found ${String(job.targetType)}.`,
    );
  }
  return type;
}

/** Checks that the job's tensor lies within both files at their present sizes. */
export function checkBounds(
  job: ConvertJob,
  type: StorageType,
  source: PositionedFile,
  target: PositionedFile,
): void {
  checkSource(job, type, source);
  const stored = storedBytes(job.targetType, job.rows, job.columns);
  checkRange(target, 'converted tensor', job.targetOffset, stored);
}

/** Checks that the job's tensor is one that can be converted, and lies within its file at the present size. */
export function checkSource(job: ConvertJob, type: StorageType, source: PositionedFile): void {
  const { rows, columns, interleavedHeads: heads, sourceByteLength } = job;
  const shape = `[${rows}, ${columns}]`;
  if (rows < 1 || rows > MAX_ROWS || columns < 1 || columns > MAX_COLUMNS)
    throw new Error(`${job.source}: a tensor of shape ${shape} is out of range.`);
  if (columns % type.blockElements !== 0) {
    throw new Error(
      `${job.source}: rows of ${columns} elements do not hold whole blocks of ${type.name} (${type.blockElements} elements).`,
    );
  }
  const expected = BigInt(rows) * BigInt((columns / type.blockElements) * type.blockBytes);
  if (job.quantized === undefined && BigInt(sourceByteLength) !== expected) {
    throw new Error(
      `${job.source}: a tensor of type ${type.name} and shape ${shape} takes ${expected} bytes, found ${sourceByteLength}.`,
    );
  }
  if (heads > 0 && rows % (2 * heads) !== 0)
    throw new Error(`${job.source}: ${rows} rows do not divide into ${heads} heads of interleaved halves.`);
  if (job.transposed && (type.blockElements !== 1 || job.quantized !== undefined)) {
    throw new Error(
      `${job.source}: a transposed tensor of type ${type.name} cannot be turned; its elements must be single numbers.`,
    );
  }
  if (!isMade(job.targetType) && exactConversion(type.name, job.targetType) === undefined) {
    throw new Error(
      `${job.source}: a tensor of type ${type.name} cannot be stored as ${job.targetType}, a format that only keeps numbers which a file has in it.`,
    );
  }
  checkRange(source, 'tensor', job.sourceOffset, sourceByteLength);
}

export function checkRange(file: PositionedFile, role: string, offset: number, length: number): void {
  const { size } = file;
  if (offset <= size && length <= size - offset) return;
  const end = BigInt(offset) + BigInt(length);
  throw file.fault(`${role} bytes ${offset} to ${end} lie beyond the file's ${size} bytes.`);
}
