import { CheckpointError } from '../checkpoint.js';
import { type RawTensor, refuseShape } from '../raw-tensor.js';
import type { FilePart } from './quantized-source.js';

/** The tensors of one module of a quantised model, by what follows its name in theirs. */
export class ModuleTensors {
  readonly name: string;
  readonly #separator: string;
  readonly #parts = new Map<string, RawTensor>();

  /** @param separator what stands between the module's name and the rest */
  constructor(name: string, separator = '.') {
    this.name = name;
    this.#separator = separator;
  }

  add(part: string, tensor: RawTensor): void {
    this.#parts.set(part, tensor);
  }

  get(part: string): RawTensor | undefined {
    return this.#parts.get(part);
  }

  /** The first of some parts that is there. */
  first(parts: readonly string[]): RawTensor | undefined {
    return this.#parts.get(parts.find((part) => this.#parts.has(part)) ?? '');
  }

  /** @throws CheckpointError where the tensor is missing, or has another type */
  need(part: string, types: readonly string[]): RawTensor {
    const tensor = this.#parts.get(part);
    if (tensor === undefined) {
      const [beside] = this.#parts.values();
      throw new CheckpointError(
        `${beside!.file}: tensor ${this.name}${this.#separator}${part} is missing, which ${beside!.name} needs.`,
      );
    }
    return ofType(tensor, types);
  }
}

/** @throws CheckpointError for a tensor of another type */
export function ofType(tensor: RawTensor, types: readonly string[]): RawTensor {
  if (types.includes(tensor.type)) return tensor;
  throw new CheckpointError(
    `${tensor.file}: tensor ${tensor.name} should have the type ${types.join(' or ')}, found ${tensor.type}.`,
  );
}

/** The two dimensions of a tensor. @throws CheckpointError where it has others */
export function sizesOf({ file, name, shape }: RawTensor): [number, number] {
  if (shape.length === 2 && shape[0]! > 0 && shape[1]! > 0) return shape as [number, number];
  throw new CheckpointError(
    `${file}: tensor ${name} should have two dimensions greater than 0, found [${shape.join(', ')}].`,
  );
}

/** The bytes of a tensor. @throws CheckpointError where it has another shape */
export function partOf(tensor: RawTensor, shape: readonly number[]): FilePart {
  const { file, offset, byteLength } = tensor;
  refuseShape(tensor, shape);
  return { file, offset, byteLength: byteLength! };
}
