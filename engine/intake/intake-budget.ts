import type { InferenceRequest } from '../../callbacks/types.js';

/**
 * Values of the tensors of requests that are taken between two iterations. Reading and checking them takes some
 * milliseconds, for which everybody in flight waits.
 */
export const INTAKE_VALUES = 2 ** 18;
/** What a request costs beside its values, in values. */
const VALUES_OF_ANY = 2048;

/**
 * How many of the requests, from the first on, are taken now: as many as their values leave room for, and at least one.
 *
 *   requests   [ 3000 | 3000 | 3000 ... ]      a hundred short ones, or
 *              [ bias on 100 000 tokens | the same | the same | ... ]      two of these; the others an iteration later
 */
export function numTaken(requests: readonly InferenceRequest[], most = INTAKE_VALUES): number {
  let left = most;
  for (const [index, request] of requests.entries()) {
    left -= valuesOf(request);
    if (left < 0) return Math.max(1, index);
  }
  return requests.length;
}

/** Whatever the tensors are: they are not checked yet. */
function valuesOf({ inputs }: InferenceRequest): number {
  let values = VALUES_OF_ANY;
  for (const tensor of Object.values(inputs ?? {})) values += tensor?.data?.length ?? 0;
  return values;
}
