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

const MAX_U64 = 0xffff_ffff_ffff_ffffn;
/** What an id of a request has to be. */
export const REQUEST_ID = `a bigint from 0 to ${MAX_U64}`;

export function isRequestId(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value <= MAX_U64;
}

/**
 * The ids that pollStopSignals returned; undefined counts as none. Throws, naming the value, where it is no set or something in it is no
 * id.
 */
export function idsIn(given: unknown): bigint[] {
  if (given === undefined) return [];
  if (typeof given !== 'object' || given === null || !(Symbol.iterator in given)) {
    throw new Error(`it gave ${kindOf(given)} where a set of ids is expected`);
  }
  const ids: bigint[] = [];
  for (const id of given as Iterable<unknown>) {
    if (!isRequestId(id)) {
      const found = typeof id === 'bigint' ? `the id ${id}` : kindOf(id);
      throw new Error(`it gave ${found} in its set of ids; an id is ${REQUEST_ID}`);
    }
    ids.push(id);
  }
  return ids;
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
