import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferParameters, InferRequest, InferSequence } from '../../../callbacks/infer/infer-types.js';
import { sequenceNumber, whyNotSequenceText } from '../../../callbacks/infer/sequence-id.js';
import { malformed } from '../../serving/infer-failure.js';

/** Takes those parameters out that are the request's own, and leaves the rest to the model. @throws InferError */
export function ownParameters({
  sequence_id,
  sequence_start,
  sequence_end,
  priority,
  timeout,
  ...parameters
}: InferParameters): Pick<InferRequest, 'parameters' | 'sequence' | 'priority' | 'timeoutUs'> {
  return {
    parameters,
    sequence: sequenceOf(sequence_id, sequence_start, sequence_end),
    priority: unsigned('priority', priority),
    timeoutUs: unsigned('timeout', timeout),
  };
}

/** A number of up to 64 bits; beyond what JavaScript's numbers hold, the largest of these replaces it. */
export function unsigned(name: string, value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  if (typeof value === 'bigint' && value >= 0n && value < 2n ** 64n) return Number.MAX_SAFE_INTEGER;
  throw malformed(`Unable to parse '${name}': a whole number from 0 is expected`);
}

function sequenceOf(id: unknown, start: unknown = false, end: unknown = false): InferSequence | null {
  if (typeof start !== 'boolean' || typeof end !== 'boolean') {
    throw malformed("Unable to parse 'sequence_start' and 'sequence_end': true or false is expected");
  }
  if (id === undefined || id === '') return null;
  if (typeof id === 'string') {
    const wrong = whyNotSequenceText(id);
    if (wrong !== null) throw new InferError(wrong, 'unsupported');
    return { id, start, end };
  }
  const number = sequenceNumber(id);
  if (number === null) {
    throw malformed(
      "Unable to parse 'sequence_id': a whole number from 0 to 2^64 - 1 or a string is expected",
    );
  }
  return number === 0n ? null : { id: number, start, end };
}
