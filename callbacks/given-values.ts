import type { InferenceRequest } from './types.js';

/** Unsettled sendResponse promises per place in the engine before no more requests are taken. */
export const PENDING_PER_SEQUENCE = 16;

/** What getInferenceRequests gave; nothing is no requests. Throws, naming what it gave, where that is no array. */
export function requestsIn(given: unknown): readonly unknown[] {
  if (given === undefined) return [];
  if (Array.isArray(given)) return given;
  throw new Error(`it gave ${kindOf(given)} where an array is expected`);
}

/** What pollStopSignals gave; nothing is no ids. Throws, naming what it gave, where that is no set. */
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

/** A view is posted together with the whole buffer under it: copies those that show only a part. */
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
