import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferParameters, InferSequence } from '../../../callbacks/infer/infer-types.js';

/** Place of a tensor in a sequence. */
export interface SequencePlace {
  /** 0: it is in none. */
  readonly id: bigint | string;
  readonly start: boolean;
  readonly end: boolean;
}

/** The form that a member receives; null: it is in no sequence. */
export function sequenceAt({ id, start, end }: SequencePlace): InferSequence | null {
  return id === 0n || id === '' ? null : { id, start, end };
}

/**
 * The place that a member's response gives its tensors by the parameters `sequence_id`, `sequence_start` and `sequence_end`; without any of
 * them, that of its request. @throws InferError where they are of other types
 */
export function placeIn(parameters: InferParameters | undefined, asked: SequencePlace): SequencePlace {
  const { sequence_id: id, sequence_start: start, sequence_end: end } = parameters ?? {};
  if (id === undefined && start === undefined && end === undefined) return asked;
  if (id !== undefined && typeof id !== 'string' && typeof id !== 'bigint' && !Number.isSafeInteger(id))
    throw wrong('sequence_id', 'a whole number or a text');
  if (start !== undefined && typeof start !== 'boolean') throw wrong('sequence_start', 'true or false');
  if (end !== undefined && typeof end !== 'boolean') throw wrong('sequence_end', 'true or false');
  return {
    id: id === undefined ? asked.id : typeof id === 'string' ? id : BigInt(id as number | bigint),
    start: start ?? false,
    end: end ?? false,
  };
}

function wrong(name: string, expected: string): InferError {
  return new InferError(`expected parameter '${name}' of a response to be ${expected}`, 'internal');
}

/** The form that the answer of an ensemble has. */
export function parametersOf({ id, start, end }: SequencePlace): InferParameters {
  return { sequence_id: id, sequence_start: start, sequence_end: end };
}
