import type { DataType } from './model-config.js';

const TYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BF16',
  'STRING',
] as const;

/** Names that numpy, ONNX, TensorFlow and the protocol have for the same types. */
const OTHER_NAMES: ReadonlyMap<string, (typeof TYPES)[number]> = new Map([
  ['BOOLEAN', 'BOOL'],
  ['BYTE', 'UINT8'],
  ['SHORT', 'INT16'],
  ['INT', 'INT32'],
  ['INTEGER', 'INT32'],
  ['LONG', 'INT64'],
  ['HALF', 'FP16'],
  ['FLOAT16', 'FP16'],
  ['BFLOAT16', 'BF16'],
  ['FLOAT', 'FP32'],
  ['FLOAT32', 'FP32'],
  ['SINGLE', 'FP32'],
  ['DOUBLE', 'FP64'],
  ['FLOAT64', 'FP64'],
  ['BYTES', 'STRING'],
  ['STR', 'STRING'],
  ['TEXT', 'STRING'],
  ['OBJECT', 'STRING'],
] as const);

/**
 * The type of a configuration that another name of it means, such as TYPE_FP32 by `float32` or TYPE_FLOAT;
 * null: unknown.
 */
export function meantDataType(name: string): DataType | null {
  const plain = name
    .slice(0, 64)
    .toUpperCase()
    .replace(/^(TYPE|DT)_/, '')
    .replace(/[^A-Z0-9]/g, '');
  const found = TYPES.find((type) => type === plain) ?? OTHER_NAMES.get(plain);
  return found === undefined ? null : `TYPE_${found}`;
}
