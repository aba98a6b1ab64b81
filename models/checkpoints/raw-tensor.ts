import type { TensorType } from './checkpoint.js';
import { CheckpointError } from './checkpoint.js';
import type { QuantizedSource } from './quantized/quantized-source.js';

/**
 * A tensor as a container's header describes it, of any type; checked to lie within its file where the size is known.
 */
export interface RawTensor {
  name: string;
  /** The container's name of the type. */
  type: string;
  /** Dimensions, outermost first. */
  shape: number[];
  file: string;
  /** Offset from the start of the file, in bytes. */
  offset: number;
  /** Size in bytes; null where the type's size is not known. */
  byteLength: number | null;
  /** See TensorLocation. */
  quantized?: QuantizedSource;
}

/** Storage types that can be converted: elements and bytes of a block; a row holds whole blocks. */
const TYPES: Readonly<Record<TensorType, { elements: number; bytes: number }>> = {
  F32: { elements: 1, bytes: 4 },
  F16: { elements: 1, bytes: 2 },
  BF16: { elements: 1, bytes: 2 },
  Q8_0: { elements: 32, bytes: 34 },
  Q4_0: { elements: 32, bytes: 18 },
  Q4_1: { elements: 32, bytes: 20 },
  Q5_0: { elements: 32, bytes: 22 },
  Q5_1: { elements: 32, bytes: 24 },
  Q2_K: { elements: 256, bytes: 84 },
  Q3_K: { elements: 256, bytes: 110 },
  Q4_K: { elements: 256, bytes: 144 },
  Q5_K: { elements: 256, bytes: 176 },
  Q6_K: { elements: 256, bytes: 210 },
  IQ4_NL: { elements: 32, bytes: 18 },
  IQ4_XS: { elements: 256, bytes: 136 },
  MXFP4: { elements: 32, bytes: 17 },
  NVFP4: { elements: 64, bytes: 36 },
  IQ1_S: { elements: 256, bytes: 50 },
  IQ1_M: { elements: 256, bytes: 56 },
  IQ2_XXS: { elements: 256, bytes: 66 },
  IQ2_XS: { elements: 256, bytes: 74 },
  IQ2_S: { elements: 256, bytes: 82 },
  IQ3_XXS: { elements: 256, bytes: 98 },
  IQ3_S: { elements: 256, bytes: 110 },
  TQ1_0: { elements: 256, bytes: 54 },
  TQ2_0: { elements: 256, bytes: 66 },
};

const supportedTensorTypes = Object.keys(TYPES) as TensorType[];

export function isSupportedType(type: string): type is TensorType {
  return Object.hasOwn(TYPES, type);
}

/** @throws CheckpointError for a tensor of a type that cannot be converted */
export function refuseUnsupportedType<T extends RawTensor>(
  tensor: T,
): asserts tensor is T & { type: TensorType; byteLength: number } {
  const { file, name, type, byteLength } = tensor;
  if (isSupportedType(type) && byteLength !== null) return;
  throw new CheckpointError(
    `${file}: tensor ${name} has type ${type}; supported: ${supportedTensorTypes.join(', ')}.`,
  );
}

/** @throws CheckpointError for a tensor of another shape */
export function refuseShape({ file, name, shape }: RawTensor, expected: readonly number[]): void {
  if (shape.length === expected.length && shape.every((size, i) => size === expected[i])) return;
  throw new CheckpointError(
    `${file}: tensor ${name} should have the shape [${expected.join(', ')}], found [${shape.join(', ')}].`,
  );
}

/** Product of the dimensions; throws where it is too large for a tensor. */
export function elementsOf(file: string, name: string, shape: readonly number[]): number {
  let elements = 1;
  for (const dimension of shape) {
    elements *= dimension;
    if (!Number.isSafeInteger(elements)) {
      throw new CheckpointError(
        `${file}: tensor ${name} of shape [${shape.join(', ')}] has too many elements.`,
      );
    }
  }
  return elements;
}

/** Size of a tensor of a supported type, in bytes. `shape` has the row length last. */
export function bytesOf(file: string, name: string, type: TensorType, shape: readonly number[]): number {
  const { elements: perBlock, bytes } = TYPES[type];
  const elements = elementsOf(file, name, shape);
  const rowLength = shape.at(-1) ?? 1;
  if (rowLength % perBlock !== 0) {
    throw new CheckpointError(
      `${file}: tensor ${name} has rows of ${rowLength} elements, which are no whole blocks of ${type} (${perBlock} elements).`,
    );
  }
  const total = (elements / perBlock) * bytes;
  if (!Number.isSafeInteger(total)) {
    throw new CheckpointError(`${file}: tensor ${name} of shape [${shape.join(', ')}] has too many bytes.`);
  }
  return total;
}

/** Throws where two tensors of one file share bytes. */
export function refuseOverlaps(tensors: readonly RawTensor[]): void {
  const placed = tensors.filter((tensor) => tensor.byteLength !== null && tensor.byteLength > 0);
  placed.sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < placed.length; i++) {
    const before = placed[i - 1]!;
    const end = before.offset + before.byteLength!;
    const next = placed[i]!;
    if (next.offset < end) {
      throw new CheckpointError(
        `${next.file}: tensor ${next.name} begins at byte ${next.offset}, inside tensor ${before.name}, which ends at byte ${end}.`,
      );
    }
  }
}
