import { describe } from 'vitest';
import { findInstallation } from '../../engine/executors/tensorflow/installation.js';

/** What `skein setup tensorflow` made: in the cache folder SKEIN_TEST_TENSORFLOW, else in the user's. null: nothing. */
export const testTensorFlow = findInstallation(process.env.SKEIN_TEST_TENSORFLOW || undefined);

if (testTensorFlow === null && process.env.CI) {
  throw new Error('The tests of the TensorFlow executor need "skein setup tensorflow"; see .ci/run.');
}
if (testTensorFlow === null) {
  console.warn('No TensorFlow (skein setup tensorflow): the tests of its executor are skipped.');
}

// Whoever opens the executor looks for it where the user's would be: in this process that is the same folder.
if (process.env.SKEIN_TEST_TENSORFLOW) process.env.SKEIN_CACHE_DIR = process.env.SKEIN_TEST_TENSORFLOW;

/** A suite that needs TensorFlow. Skipped, with the line above, where it is not set up. */
export const describeWithTensorFlow = describe.skipIf(testTensorFlow === null);
