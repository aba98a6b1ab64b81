import { MAX_ANSWERS_TEXT } from '../../../callbacks/infer/answer-limits.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { EnsembleState } from '../../../scheduler/tensors/ensemble-state.js';
import { asInferError } from '../infer-failure.js';

/** Why a request of an ensemble failed; the first words are Triton's. */
export function inEnsemble(ensemble: string, error: unknown): InferError {
  const { message, kind, cause } = asInferError(error);
  return new InferError(`in ensemble '${ensemble}', ${message}`, kind, { cause });
}

/** An error of a member, which names it. */
export function ofMember(model: string, error: unknown): InferError {
  const told = asInferError(error);
  if (told.message.includes(`'${model}'`)) return told;
  return new InferError(`model '${model}': ${told.message}`, told.kind, { cause: told.cause });
}

export function noAnswer(model: string): InferError {
  return new InferError(`the model '${model}' ended the request without an answer`, 'internal');
}

export function tooMuchHeld(): InferError {
  return new InferError(
    `its members gave more than ${MAX_ANSWERS_TEXT} that wait for steps, which is what one request may have`,
    'internal',
  );
}

/** What is wrong where every step has ended; null: nothing. @param mayBeSilent the ensemble may answer nothing at all */
export function unmetError(
  state: EnsembleState,
  { id }: InferRequest,
  mayBeSilent: boolean,
): InferError | null {
  if (state.numAnswers === 0 && !mayBeSilent) {
    return new InferError(
      `[request id: ${id === '' ? '<id_unknown>' : id}] unexpected deadlock, at least one output is not set while no more ensemble steps can be made`,
      'invalid',
    );
  }
  const unmet = state.unmet();
  if (unmet === null) return null;
  const { more, count, less, lessCount } = unmet;
  return new InferError(
    `tensor '${more}' came ${count} times and tensor '${less}', which is taken with it, ${lessCount} times`,
    'internal',
  );
}
