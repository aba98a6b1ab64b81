import { elementsOf, packElements } from '../../../callbacks/infer/byte-elements.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The texts of a BYTES tensor whose lengths have been checked. @throws InferError for one that is no UTF-8 */
export function textsOf({ name, data }: InferTensor): string[] {
  return elementsOf(data).map((element, i) => {
    try {
      return decoder.decode(element);
    } catch {
      throw new InferError(`element ${i} of input '${name}' is not valid UTF-8`, 'invalid');
    }
  });
}

/** A BYTES tensor of one dimension, or of the shape. */
export function textTensor(
  name: string,
  texts: readonly string[],
  shape: readonly number[] = [texts.length],
): InferTensor {
  return { name, datatype: 'BYTES', shape, data: packElements(texts) };
}

/** An FP32 tensor; the values are not copied. */
export function floatTensor(name: string, values: Float32Array, shape: readonly number[]): InferTensor {
  const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return { name, datatype: 'FP32', shape, data };
}

/** An INT32 tensor; values that are an array of the type already are not copied. */
export function integerTensor(
  name: string,
  values: Int32Array | readonly number[],
  shape: readonly number[],
): InferTensor {
  const { buffer, byteOffset, byteLength } = values instanceof Int32Array ? values : Int32Array.from(values);
  return { name, datatype: 'INT32', shape, data: new Uint8Array(buffer, byteOffset, byteLength) };
}
