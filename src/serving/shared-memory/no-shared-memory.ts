import { InferError } from '../../../callbacks/infer/infer-error.js';

/** To clients that register a region where they have no leave. */
export function noSharedMemory(): InferError {
  return new InferError(
    'this server has no system shared memory: tensors come in requests (--allow-shared-memory)',
    'unsupported',
  );
}

export function noCudaMemory(): InferError {
  return new InferError('this server has no cuda shared memory: tensors come in requests', 'unsupported');
}

export function noCudaRegion(name: string): InferError {
  return new InferError(`Unable to find cuda shared memory region: '${name}'`, 'notFound');
}
