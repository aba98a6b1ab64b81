import { halfToBits, load16 } from '../../base/half.js';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { readExactly } from '../checkpoints/file-reading.js';
import type { RawTensor } from '../checkpoints/raw-tensor.js';

/** The elements' float32 bits, from little-endian bytes of a type. */
const READERS: Readonly<Record<string, (bytes: Uint8Array, bits: Uint32Array) => void>> = {
  F32: (bytes, bits) => new Uint8Array(bits.buffer).set(bytes),
  F16: (bytes, bits) => {
    for (let i = 0; i < bits.length; i++) bits[i] = halfToBits(load16(bytes, 2 * i));
  },
  BF16: (bytes, bits) => {
    for (let i = 0; i < bits.length; i++) bits[i] = load16(bytes, 2 * i) << 16;
  },
};

/** Throws unless the tensor has one of the types that are read. */
export function checkFloatType({ file, name, type }: RawTensor): void {
  if (!Object.hasOwn(READERS, type)) {
    throw new CheckpointError(
      `${file}: tensor ${name} should have one of the types ${Object.keys(READERS).join(', ')}, found ${type}.`,
    );
  }
}

/**
 * A tensor's elements as float32, each times `scale` and rounded once. `fd` is its open file.
 * @throws CheckpointError for an element that is not finite, before or after the scaling.
 */
export function readFloats(fd: number, tensor: RawTensor, scale: number): Float32Array {
  const { file, name, type, offset, byteLength } = tensor;
  const bytes = new Uint8Array(byteLength!);
  readExactly(file, fd, bytes, offset);
  const floats = new Float32Array(byteLength! / (type === 'F32' ? 4 : 2));
  READERS[type]!(bytes, new Uint32Array(floats.buffer));
  for (let i = 0; i < floats.length; i++) {
    const value = floats[i]!;
    floats[i] = value * scale;
    if (!Number.isFinite(floats[i]!)) {
      const scaled = Number.isFinite(value) ? `, ${value} times its scaling ${scale}` : '';
      throw new CheckpointError(
        `${file}: tensor ${name} should hold finite numbers, found ${floats[i]}${scaled} at element ${i}.`,
      );
    }
  }
  return floats;
}
