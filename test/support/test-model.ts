import { existsSync } from 'node:fs';
import { describe } from 'vitest';

/** Folder of the real model, from SKEIN_TEST_MODEL; null where it is not set. */
export const testModelPath: string | null = process.env.SKEIN_TEST_MODEL || null;

if (testModelPath !== null && !existsSync(testModelPath)) {
  throw new Error(`SKEIN_TEST_MODEL names ${testModelPath}, which does not exist.`);
}
if (testModelPath === null) {
  console.warn('SKEIN_TEST_MODEL is not set: the tests that need the real model are skipped.');
}

/** A suite that needs the real model. Skipped, with the line above, where SKEIN_TEST_MODEL is not set. */
export const describeWithTestModel = describe.skipIf(testModelPath === null);
