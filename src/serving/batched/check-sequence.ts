import { datatypeOf } from '../../../callbacks/infer/datatypes.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferRequest, InferSequence } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { typeOfControl } from '../../../models/repository/sequence-tensors.js';

/**
 * Holds the sequence of a request against a model that has sequences. Words are Triton's, which clients know.
 * @param batchSize rows of the request @returns null: it belongs to none, which an iterative model allows @throws InferError invalid
 */
export function checkedSequence(
  { name, sequence_batching: batching }: ModelConfig,
  { id: requestId, sequence }: InferRequest,
  batchSize: number,
): InferSequence | null {
  const control = batching!.control_input.find((one) => one.control[0]!.kind === 'CONTROL_SEQUENCE_CORRID');
  if (control !== undefined && sequence !== null) {
    const type = datatypeOf(typeOfControl(control.control[0]!)!);
    const isText = typeof sequence.id === 'string';
    if (isText !== (type === 'BYTES')) {
      const request = requestId === '' ? '<id_unknown>' : requestId;
      const given = `data-type is '${isText ? 'BYTES' : 'UINT64'}', but model '${name}' expects '${type}'`;
      throw new InferError(
        `[request id: ${request}] sequence batching control '${control.name}' ${given}`,
        'invalid',
      );
    }
  }
  if (batchSize > 1) {
    throw new InferError(
      `inference request to model '${name}' must specify batch-size 1 due to requirements of sequence batcher`,
      'invalid',
    );
  }
  if (sequence === null && !batching!.iterative_sequence) {
    throw new InferError(
      `inference request to model '${name}' must specify a non-zero or non-empty correlation ID`,
      'invalid',
    );
  }
  return sequence;
}
