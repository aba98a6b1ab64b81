/** Characters of an id that is a text. Source: Triton's TRITONSERVER_InferenceRequestSetCorrelationIdString. */
const LONGEST_SEQUENCE_ID = 128;

const MAX_ID = 2n ** 64n - 1n;

/** Triton's sentence about an id that is a text; null: it is not too long. */
export function whyNotSequenceText(id: string): string | null {
  if (id.length <= LONGEST_SEQUENCE_ID) return null;
  return `string correlation ID cannot be longer than ${LONGEST_SEQUENCE_ID} characters`;
}

/** The number of a sequence, which has 64 bits; null: it is no such number. 0 is no sequence. */
export function sequenceNumber(id: unknown): bigint | null {
  if (typeof id === 'number' && Number.isSafeInteger(id) && id >= 0) return BigInt(id);
  return typeof id === 'bigint' && id >= 0n && id <= MAX_ID ? id : null;
}
