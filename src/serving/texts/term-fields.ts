import type { InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { TextRequest } from '../../generation/text-generation.js';

/** What a server adds to a request for texts, by whatever protocol it came. */
type Terms = Pick<InferTerms, 'label' | 'caller' | 'weight' | 'timeLimitMs' | 'cacheSalt' | 'engine'>;

/**
 * The fields that the server of a request adds to it: the shorter time limit holds, and its salt is kept
 * apart by its caller.
 */
export function termFields(
  terms: Terms,
  { timeLimitMs, cacheSalt }: Pick<TextRequest, 'timeLimitMs' | 'cacheSalt'>,
): Partial<TextRequest> {
  const limit = Math.min(
    timeLimitMs ?? Number.POSITIVE_INFINITY,
    terms.timeLimitMs ?? Number.POSITIVE_INFINITY,
  );
  return {
    label: terms.label,
    queueKey: terms.caller,
    queueWeight: terms.weight,
    cacheSalt: terms.cacheSalt(cacheSalt),
    engineFingerprint: terms.engine,
    ...(Number.isFinite(limit) ? { timeLimitMs: limit } : {}),
  };
}
