import { existsSync } from 'node:fs';
import { describe } from 'vitest';

/** Folder of all-MiniLM-L6-v2, from SKEIN_TEST_ENCODER (tools/reference/fetch-minilm.py makes it); null where it is not set. */
export const testEncoderPath: string | null = process.env.SKEIN_TEST_ENCODER || null;

if (testEncoderPath !== null && !existsSync(testEncoderPath)) {
  throw new Error(`SKEIN_TEST_ENCODER names ${testEncoderPath}, which does not exist.`);
}
if (testEncoderPath === null) {
  console.warn('SKEIN_TEST_ENCODER is not set: the tests that need all-MiniLM-L6-v2 are skipped.');
}

/** A suite that needs all-MiniLM-L6-v2. Skipped, with the line above, where SKEIN_TEST_ENCODER is not set. */
export const describeWithTestEncoder = describe.skipIf(testEncoderPath === null);

/** Tiny encoders with random weights: see tools/reference/encoders.py. */
export const TINY_ENCODERS = ['bert-mean', 'bert-cls', 'bert-last', 'bert-score', 'roberta-score'] as const;
