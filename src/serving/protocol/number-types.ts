import { MAX_INT32 } from '../../../base/int32.js';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';

/** A type of numbers: its bytes, how a value of JSON becomes an element, and an element a text of JSON. */
export interface NumberType {
  bytes: number;
  /** JSON has NaN and Infinity for it, as Triton and Python's writer have them. */
  isFloat: boolean;
  /** Writes an element. False: the value is not of the type. */
  write(view: DataView, offset: number, value: unknown): boolean;
  read(view: DataView, offset: number): number | bigint;
  text(view: DataView, offset: number): string;
}

/** Whole numbers of at most 32 bits, from `least` to `most`. */
function whole(
  bytes: number,
  least: number,
  most: number,
  name: 'Int8' | 'Uint8' | 'Int16' | 'Uint16' | 'Int32' | 'Uint32',
): NumberType {
  return {
    bytes,
    isFloat: false,
    write: (view, offset, value) => {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
        return false;
      view[`set${name}`](offset, value, true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
    text: (view, offset) => String(view[`get${name}`](offset, true)),
  };
}

/** Whole numbers of 64 bits, which JavaScript's own numbers do not hold. */
function wide(least: bigint, most: bigint, name: 'BigInt64' | 'BigUint64'): NumberType {
  return {
    bytes: 8,
    isFloat: false,
    write: (view, offset, value) => {
      if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) return false;
      const exact = BigInt(value as number | bigint);
      if (exact < least || exact > most) return false;
      view[`set${name}`](offset, exact, true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
    text: (view, offset) => String(view[`get${name}`](offset, true)),
  };
}

function floating(bytes: number, name: 'Float32' | 'Float64'): NumberType {
  return {
    bytes,
    isFloat: true,
    write: (view, offset, value) => {
      if (typeof value !== 'number' && typeof value !== 'bigint') return false;
      view[`set${name}`](offset, Number(value), true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
    text: (view, offset) => floatText(view[`get${name}`](offset, true)),
  };
}

/**
 * A float differs from a whole number by its point or exponent, as Triton writes it: 3.0, -0.0, 1e21, NaN,
 * -Infinity.
 */
function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0';
  const text = String(value);
  if (!Number.isInteger(value)) return text;
  return Math.abs(value) < 1e21 ? `${text}.0` : text.replace('+', '');
}

/** Types whose elements JSON has a form for; BYTES is read and written as texts, FP16 and BF16 as binary data alone. */
export const NUMBER_TYPES: Readonly<Partial<Record<Datatype, NumberType>>> = {
  BOOL: {
    bytes: 1,
    isFloat: false,
    write: (view, offset, value) => {
      if (typeof value !== 'boolean' && value !== 0 && value !== 1) return false;
      view.setUint8(offset, Number(value));
      return true;
    },
    read: (view, offset) => view.getUint8(offset),
    text: (view, offset) => (view.getUint8(offset) === 0 ? 'false' : 'true'),
  },
  INT8: whole(1, -128, 127, 'Int8'),
  UINT8: whole(1, 0, 255, 'Uint8'),
  INT16: whole(2, -(2 ** 15), 2 ** 15 - 1, 'Int16'),
  UINT16: whole(2, 0, 2 ** 16 - 1, 'Uint16'),
  INT32: whole(4, -(2 ** 31), MAX_INT32, 'Int32'),
  UINT32: whole(4, 0, 2 ** 32 - 1, 'Uint32'),
  INT64: wide(-(2n ** 63n), 2n ** 63n - 1n, 'BigInt64'),
  UINT64: wide(0n, 2n ** 64n - 1n, 'BigUint64'),
  FP32: floating(4, 'Float32'),
  FP64: floating(8, 'Float64'),
};
