import { input, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';

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
