import type { Datatype } from '../../../callbacks/infer/datatypes.js';

/** Names of TensorFlow's DataType by number. Source: types.proto. */
const NAMES: Readonly<Record<number, string>> = {
  1: 'float32',
  2: 'float64',
  3: 'int32',
  4: 'uint8',
  5: 'int16',
  6: 'int8',
  7: 'string',
  8: 'complex64',
  9: 'int64',
  10: 'bool',
  14: 'bfloat16',
  17: 'uint16',
  18: 'complex128',
  19: 'float16',
  20: 'resource',
  21: 'variant',
  22: 'uint32',
  23: 'uint64',
};

interface CrossingType {
  datatype: Datatype;
  /** The binding's name of the type, as its constants have it. */
  binding: 'TF_FLOAT' | 'TF_INT32' | 'TF_INT64' | 'TF_UINT8' | 'TF_BOOL' | 'TF_STRING';
}

/** Types that tfjs-node passes into TensorFlow by number; those out of it are fewer. Source: its binding/tfjs_backend.cc. */
const INTO: ReadonlyMap<number, CrossingType> = new Map([
  [1, { datatype: 'FP32', binding: 'TF_FLOAT' }],
  [3, { datatype: 'INT32', binding: 'TF_INT32' }],
  [4, { datatype: 'UINT8', binding: 'TF_UINT8' }],
  [7, { datatype: 'BYTES', binding: 'TF_STRING' }],
  [9, { datatype: 'INT64', binding: 'TF_INT64' }],
  [10, { datatype: 'BOOL', binding: 'TF_BOOL' }],
]);
const OUT_OF: ReadonlySet<number> = new Set([1, 3, 7, 9, 10]);

/** The type of an input; null: it does not cross. */
export const inputType = (dtype: number): CrossingType | null => INTO.get(dtype) ?? null;

/** The protocol's type of an output; null: it does not cross. */
export const outputType = (dtype: number): Datatype | null =>
  OUT_OF.has(dtype) ? INTO.get(dtype)!.datatype : null;

export const nameOfType = (dtype: number): string => NAMES[dtype] ?? `number ${dtype}`;

/** What crosses, as a sentence lists it. */
export const INPUT_TYPES = 'float32, int32, int64, uint8, bool and string';
export const OUTPUT_TYPES = 'float32, int32, int64, bool and string';
