import { InferError } from '../../../callbacks/infer/infer-error.js';

/** A request that is wrong, whichever protocol it came by. */
export function malformed(message: string): InferError {
  return new InferError(message, 'invalid');
}
