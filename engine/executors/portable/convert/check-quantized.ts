import type { TensorType } from '../../../../models/checkpoints/checkpoint.js';
import { codeBits, type FilePart } from '../../../../models/checkpoints/quantized/quantized-source.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import { checkRange } from './check-job.js';
import type { OpenFiles } from './open-files.js';
import { SCALE_BYTES } from './quantized-scales.js';

/** Types as whose blocks quantised matrices are read. */
const READ_AS: ReadonlySet<TensorType> = new Set(['F32', 'Q4_0', 'Q5_0', 'Q8_0', 'MXFP4']);

/** Checks that each part of a quantised matrix has the bytes that its shape asks for, and lies within its file. Throws one sentence. */
export function checkQuantized(
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
