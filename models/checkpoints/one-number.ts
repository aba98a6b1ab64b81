import { fromHalf, load16 } from '../../base/half.js';
import { CheckpointError } from './checkpoint.js';
import { readExactly, withFile } from './file-reading.js';
import type { RawTensor } from './raw-tensor.js';

/** The number of a tensor that has one. @throws CheckpointError for a tensor of more numbers, or of another type */
export function numberOf({ file, name, type, shape, offset }: RawTensor): number {
  const isOne = shape.length <= 1 && (shape[0] ?? 1) === 1;
  if (!isOne || (type !== 'F32' && type !== 'BF16' && type !== 'F16')) {
    throw new CheckpointError(
      `${file}: tensor ${name} should be F32, BF16 or F16 of shape [1], found ${type} of shape [${shape.join(', ')}].`,
    );
  }
  const bytes = new Uint8Array(4);
  // The upper half of a float32 is a bf16.
  const own = type === 'F32' ? bytes : type === 'BF16' ? bytes.subarray(2) : bytes.subarray(0, 2);
  withFile(file, (fd) => readExactly(file, fd, own, offset));
  return type === 'F16' ? fromHalf(load16(bytes, 0)) : new DataView(bytes.buffer).getFloat32(0, true);
}
