import type { Datatype } from '../../../callbacks/infer/datatypes.js';

const signed = (bits: bigint) => [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] as const;
const unsigned = (bits: bigint) => [0n, 2n ** bits - 1n] as const;

/** The smallest and the largest value of each type of whole numbers. */
const RANGES: Readonly<Partial<Record<Datatype, readonly [bigint, bigint]>>> = {
  BOOL: unsigned(1n),
  INT8: signed(8n),
  INT16: signed(16n),
  INT32: signed(32n),
  INT64: signed(64n),
  UINT8: unsigned(8n),
  UINT16: unsigned(16n),
  UINT32: unsigned(32n),
  UINT64: unsigned(64n),
};

/**
 * Why a list cannot be a tensor of the type; null: it can, or holds what are no numbers at all. An array of JavaScript would take each number,
 * and cut it to what its type holds.
 */
export function whyNotOfType(datatype: Datatype, values: readonly unknown[]): string | null {
  if (datatype === 'FP16' || datatype === 'BF16') return `a Uint16Array of bits is expected for ${datatype}`;
  const range = RANGES[datatype];
  if (range === undefined) return null;
  const wrong = values.find((value) => isOutside(value, range));
  return wrong === undefined ? null : `${String(wrong)} is no value of ${datatype}`;
}

function isOutside(value: unknown, [least, most]: readonly [bigint, bigint]): boolean {
  if (typeof value === 'bigint') return value < least || value > most;
  return typeof value === 'number' && !(Number.isInteger(value) && value >= least && value <= most);
}
