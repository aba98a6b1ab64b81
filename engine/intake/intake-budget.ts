import type { InferenceRequest } from '../../callbacks/types.js';

/**
 * Most values in the tensors of all requests taken between two iterations. Reading and checking them takes some
 * milliseconds, for which every request in flight waits.
 */
const INTAKE_VALUES = 2 ** 18;
/** Cost of a request in addition to its values, in values. */
const VALUES_OF_ANY = 2048;

/**
 * Number of requests, from the first on, that are taken now: as many as their values leave room for, and at least one.
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

/** Number of a request's values; its tensors may be anything, since they have not been checked yet. */
function valuesOf({ inputs }: InferenceRequest): number {
  let values = VALUES_OF_ANY;
  for (const tensor of Object.values(inputs ?? {})) values += tensor?.data?.length ?? 0;
  return values;
}
