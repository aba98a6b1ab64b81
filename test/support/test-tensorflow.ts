import { describe } from 'vitest';
import { findInstallation } from '../../engine/executors/tensorflow/installation.js';

/** Installation by `skein setup tensorflow` in the cache folder SKEIN_TEST_TENSORFLOW, else in the user's; null: none. */
export const testTensorFlow = findInstallation(process.env.SKEIN_TEST_TENSORFLOW || undefined);

if (testTensorFlow === null && process.env.CI) {
  throw new Error('The tests of the TensorFlow executor need "skein setup tensorflow"; see .ci/run.');
}
if (testTensorFlow === null) {
  console.warn('No TensorFlow (skein setup tensorflow): the tests of its executor are skipped.');
}

// An executor opened in this process looks in the user's cache folder, which is made the same one.
if (process.env.SKEIN_TEST_TENSORFLOW) process.env.SKEIN_CACHE_DIR = process.env.SKEIN_TEST_TENSORFLOW;

/** A suite that needs TensorFlow. Skipped, with the line above, where it is not set up. */
export const describeWithTensorFlow = describe.skipIf(testTensorFlow === null);
