import { input, says } from '../../base/named-text.js';
import { checkRange, ParameterError } from '../../callbacks/sampling-params.js';
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

/** Text of a tensor of UTF-8 bytes; null if it is not given. */
export function readText(inputs: Record<string, Tensor>, name: string): string | null {
  const tensor = inputs[name];
  if (!tensor) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(tensor.data as Uint8Array);
  } catch {
    throw new ParameterError(name, says`${input(name)} is not UTF-8; it must hold the bytes of a text.`);
  }
}
