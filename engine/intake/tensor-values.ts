import { checkRange } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';

/** The one value of a tensor; `fallback` if it is not given. Throws a ParameterError for a value outside min to max. */
export function readInt(
  inputs: Record<string, Tensor>,
  name: string,
  fallback: number | undefined,
  min: number,
  max: number,
): number {
  const tensor = inputs[name];
  if (!tensor) return fallback!;
  const value = tensor.data[0] as number;
  checkRange(name, value, { min, max, integer: true });
  return value;
}

export function readBool(inputs: Record<string, Tensor>, name: string): boolean {
  return readInt(inputs, name, 0, 0, 1) === 1;
}
