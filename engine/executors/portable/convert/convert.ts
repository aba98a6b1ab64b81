import type { TensorType } from '../../../../models/checkpoints/checkpoint.js';
import { codeBits, type FilePart } from '../../../../models/checkpoints/quantized/quantized-source.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import { storedBytes } from '../../../directory/weight-blocks.js';
import { checkBounds, checkFields, checkRange } from './check-job.js';
import { ConvertedRows } from './converted-rows.js';
import { OpenFiles } from './open-files.js';
import { PositionedFile } from './positioned-file.js';
import { SCALE_BYTES } from './quantized-scales.js';
import type { StorageType } from './tensor-types.js';

/** Number of elements in a piece of rows, about: 1 MiB of float32. */
const PIECE_ELEMENTS = 2 ** 18;
/** Least number of rows in a piece of a transposed source, which is read piece by piece. */
const TRANSPOSED_ROWS = 256;
/** Number of elements in a piece of a quantised matrix that lies by columns, about; and its least number of rows. */
const BY_COLUMNS_ELEMENTS = 2 ** 22;
const BY_COLUMNS_ROWS = 32;

/** A job with its open file and its type. */
interface Work {
  job: ConvertJob;
  type: StorageType;
  source: PositionedFile;
}

/**
 * Does the work of NativeAddon.convert in TypeScript: the same bytes and the same error messages, in this thread alone.
 * It takes a few MiB of memory, whatever the tensors' size.
 */
export function convert(target: string, jobs: readonly ConvertJob[], threads: number): void {
  for (const _ of convertInPieces(target, jobs, threads));
}

/** Converts piece by piece: the caller may do other things between two pieces, or stop early. */
export function* convertInPieces(
  target: string,
  jobs: readonly ConvertJob[],
  threads: number,
): Generator<void, void, void> {
  checkArguments(target, jobs, threads);
  const types = jobs.map(checkFields);
  const files = new OpenFiles();
  const file = PositionedFile.forWriting(target);
  try {
    const works = jobs.map((job, i): Work => {
      const source = files.at(job.source);
      checkBounds(job, types[i]!, source, file);
      checkQuantized(job, files);
      return { job, type: types[i]!, source };
    });
    const rows = new ConvertedRows();
    for (const { job, type, source } of works) {
      const rowsPerPiece = rowsOfPiece(job);
      for (let first = 0; first < job.rows; first += rowsPerPiece) {
        const count = Math.min(rowsPerPiece, job.rows - first);
        const bytes = rows.of(job, type, source, first, count, files);
        file.write(bytes, job.targetOffset + storedBytes(job.targetType, first, job.columns));
        yield;
      }
    }
  } finally {
    file.close();
    files.close();
  }
}

/** Rows that are converted at once: many where a row does not lie in one place. */
function rowsOfPiece({ columns, transposed = false, quantized }: ConvertJob): number {
  if (quantized !== undefined && quantized.order !== 'rows')
    return Math.max(BY_COLUMNS_ROWS, Math.floor(BY_COLUMNS_ELEMENTS / columns));
  return Math.max(transposed ? TRANSPOSED_ROWS : 1, Math.floor(PIECE_ELEMENTS / columns));
}

function checkArguments(target: unknown, jobs: unknown, threads: unknown): void {
  if (typeof target !== 'string' || !Array.isArray(jobs) || typeof threads !== 'number')
    throw new TypeError('convert takes a target path, an array of jobs and a number of threads.');
  if (!(threads >= 1 && threads <= 1024)) throw new RangeError('convert: threads should be from 1 to 1024.');
}

/** Types as whose blocks quantised matrices are read. */
const READ_AS: ReadonlySet<TensorType> = new Set(['F32', 'Q4_0', 'Q5_0', 'Q8_0', 'MXFP4']);

/** Checks that each part of a quantised matrix has the bytes that its shape asks for, and lies within its file. Throws one sentence. */
function checkQuantized(
  { quantized, rows, columns, sourceByteLength, source, type }: ConvertJob,
  files: OpenFiles,
): void {
  if (quantized === undefined) return;
  const { name, scales, zeros, groups, divisor, rowsEach, columnsEach } = quantized;
  if (!isCount(rowsEach) || !isCount(columnsEach))
    throw new Error(`${source}: the blocks of ${name} should have sizes greater than 0.`);
  if (!READ_AS.has(type)) throw new Error(`${source}: ${name} cannot be read as ${type}.`);
  const inWord = 32 / codeBits(quantized.codes);
  const down = Math.ceil(rows / rowsEach);
  const across = Math.ceil(columns / columnsEach);
  const { order } = quantized;
  const fits =
    order === 'rows'
      ? sourceByteLength % rows === 0 && sourceByteLength / rows >= Math.ceil(columns / (inWord / 4))
      : sourceByteLength === rows * Math.ceil((4 * columns) / inWord) &&
        (order === 'gptq' ? columns : rows) % inWord === 0;
  if (!fits)
    throw new Error(`${source}: the codes of ${name} take another number of bytes than ${sourceByteLength}.`);
  const check = (what: string, part: FilePart, expected: number): void => {
    if (part.byteLength !== expected) {
      throw new Error(
        `${part.file}: the ${what} of ${name} take ${expected} bytes, found ${part.byteLength}.`,
      );
    }
    checkRange(files.at(part.file), 'tensor', part.offset, part.byteLength);
  };
  check('scales', scales, down * across * SCALE_BYTES[scales.type]);
  if (zeros !== undefined)
    check(
      'zero points',
      zeros,
      zeros.order === 'bytes' ? down * across : 4 * Math.ceil(down / inWord) * across,
    );
  if (groups !== undefined) check('groups', groups, 4 * columns);
  if (divisor !== undefined) check('divisor', divisor, 4);
}

const isCount = (size: number) => Number.isSafeInteger(size) && size > 0;
