import type { InferenceRequest } from './types.js';

/** Unsettled sendResponse promises per place in the engine before no more requests are taken. */
export const PENDING_PER_SEQUENCE = 16;

/**
 * The requests that getInferenceRequests returned; undefined counts as none. Throws, naming the value, where it is no
 * array.
 */
export function requestsIn(given: unknown): readonly unknown[] {
  if (given === undefined) return [];
  if (Array.isArray(given)) return given;
  throw new Error(`it gave ${kindOf(given)} where an array is expected`);
}

/** The ids that pollStopSignals returned; undefined counts as none. Throws, naming the value, where it is no set. */
export function idsIn(given: unknown): bigint[] {
  if (given === undefined) return [];
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) {
    return [...(given as Iterable<bigint>)];
  }
  throw new Error(`it gave ${kindOf(given)} where a set of ids is expected`);
}

function kindOf(given: unknown): string {
  if (given === null) return 'null';
  return typeof given === 'object' ? 'an object' : `a ${typeof given}`;
}

/** Copies every tensor that is a view of part of a buffer, since posting a view sends the whole buffer under it. */
export function compact(request: InferenceRequest): InferenceRequest {
  const inputs = { ...request.inputs };
  for (const [name, tensor] of Object.entries(inputs)) {
    const data = tensor?.data;
    if (ArrayBuffer.isView(data) && 'slice' in data && data.byteLength < data.buffer.byteLength) {
      inputs[name] = { ...tensor, data: data.slice() };
    }
  }
  return { ...request, inputs };
}
