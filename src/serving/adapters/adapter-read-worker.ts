import { fingerprintOf } from '../../../engine/peft/adapter-fingerprint.js';
import { openAdapter } from '../../../models/adapters/open-adapter.js';
import { sharedAdapter } from '../../../models/adapters/shared-adapter.js';
import { answerJobs } from '../../../models/answer-jobs.js';
import type { AdapterToRead, ReadAdapter } from './adapter-reader.js';

/** Entry of the thread that reads adapters. They go on in shared memory: one of a gigabyte would be copied in a second. */
answerJobs(({ path, config, limits }: AdapterToRead): ReadAdapter => {
  const weights = sharedAdapter(openAdapter(path, config, limits));
  return { weights, digest: fingerprintOf(weights) };
});
