import { SkeinError } from '../../../base/skein-error.js';

/** TensorFlow is missing, cannot be loaded, or cannot do what is asked. The message is a sentence that says what to do. */
export class TensorFlowError extends SkeinError {
  override name = 'TensorFlowError';
  override readonly code = 'SKEIN_TENSORFLOW';
}
