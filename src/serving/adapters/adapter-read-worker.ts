import { noteFreed } from '../../../base/buffer-pool.js';
import { cutText, messageOf } from '../../../base/error-text.js';
import { fingerprintOf } from '../../../engine/peft/adapter-fingerprint.js';
import { openAdapter } from '../../../models/adapters/open-adapter.js';
import { sharedAdapter } from '../../../models/adapters/shared-adapter.js';
import { answerJobs } from '../../../models/answer-jobs.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openOnlyBelow } from '../../../models/checkpoints/open-only-below.js';
import type { AdapterToRead, ReadAdapter } from './adapter-reader.js';

/** Bytes of the adapter that was read before: this thread needs them no more. */
let handedOver = 0;

/**
 * Entry of the thread that reads adapters. They are passed on in shared memory: one of a gigabyte would be
 * copied in a second.
 */
answerJobs(({ path, config, limits, within }: AdapterToRead): ReadAdapter => {
  noteFreed(handedOver);
  handedOver = 0;
  openOnlyBelow(within);
  const weights = sharedAdapter(opened(path, () => openAdapter(path, config, limits)));
  handedOver = weights.tensors.weights.byteLength;
  return { weights, digest: fingerprintOf(weights) };
});

/** Characters of a sentence about a file, which may have names of any length. */
const LONGEST_SENTENCE = 4096;

/** Files may be anything: an error that they cause is reported in a sentence of bounded length. */
function opened<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    // JSON that is nested without end, or texts beyond what can be.
    if (error instanceof RangeError)
      throw new CheckpointError(`${path}: its files cannot be read as an adapter: ${messageOf(error)}.`);
    if (error instanceof CheckpointError && error.message.length > LONGEST_SENTENCE)
      throw new CheckpointError(cutText(error.message, LONGEST_SENTENCE));
    throw error;
  }
}
