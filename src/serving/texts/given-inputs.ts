import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { copiedBytes } from '../../../callbacks/infer/sent-tensors.js';
import { textsOf } from './tensor-values.js';
import { type TextInputName, textInputOf } from './text-inputs.js';

/** A copy of the elements, which lie anywhere in their memory. */
const aligned = ({ data }: InferTensor): ArrayBuffer => copiedBytes(data).buffer;

const invalid = (message: string) => new InferError(message, 'invalid');

type MeaningOf = (name: string) => TextInputName | undefined;

/** The inputs of a request by what they mean, whichever of their names the client used. */
export class GivenInputs {
  readonly #given = new Map<TextInputName, InferTensor>();

  /** @param meaningOf the input that a name means @throws InferError for one that is given under two names */
  constructor(inputs: readonly InferTensor[], meaningOf: MeaningOf = textInputOf) {
    for (const input of inputs) {
      const name = meaningOf(input.name)!;
      const other = this.#given.get(name);
      if (other !== undefined) {
        throw invalid(
          `'${other.name}' and '${input.name}' are two names of one input; one of them is expected`,
        );
      }
      this.#given.set(name, input);
    }
  }

  has(name: TextInputName): boolean {
    return this.#given.has(name);
  }

  get(name: TextInputName): InferTensor | undefined {
    return this.#given.get(name);
  }

  /** As the client called it, or would find it. */
  nameOf(name: TextInputName): string {
    return this.#given.get(name)?.name ?? name;
  }

  /** The first element; undefined: it is not given. */
  number(name: TextInputName): number | undefined {
    const tensor = this.#given.get(name);
    if (tensor === undefined) return undefined;
    const view = new DataView(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    return tensor.datatype === 'FP32' ? view.getFloat32(0, true) : view.getInt32(0, true);
  }

  big(name: TextInputName): bigint | undefined {
    const tensor = this.#given.get(name);
    return tensor && new DataView(tensor.data.buffer, tensor.data.byteOffset, 8).getBigUint64(0, true);
  }

  is(name: TextInputName): boolean {
    return (this.#given.get(name)?.data[0] ?? 0) !== 0;
  }

  integers(name: TextInputName): Int32Array | undefined {
    const tensor = this.#given.get(name);
    return tensor && new Int32Array(aligned(tensor));
  }

  floats(name: TextInputName): Float32Array | undefined {
    const tensor = this.#given.get(name);
    return tensor && new Float32Array(aligned(tensor));
  }

  /**
   * Rows of a matrix, the last two of its sizes. They are counted before one is made: a row of no elements costs the
   * client nothing. @throws InferError for more than `most`, and for rows without elements
   */
  rows(name: TextInputName, most: number): Float32Array[] | undefined {
    const tensor = this.#given.get(name);
    if (tensor === undefined) return undefined;
    const [count = 0, width = 0] = tensor.shape.slice(-2);
    if (count > most) throw invalid(`'${tensor.name}' has ${count} rows; at most ${most} are taken`);
    if (count > 0 && width === 0) throw invalid(`'${tensor.name}' has rows without elements`);
    const values = this.floats(name)!;
    return Array.from({ length: count }, (_, i) => values.subarray(i * width, (i + 1) * width));
  }

  /** @throws InferError for what is no UTF-8 */
  texts(name: TextInputName): string[] | undefined {
    const tensor = this.#given.get(name);
    return tensor && textsOf(tensor);
  }
}
