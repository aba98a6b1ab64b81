import { MAX_INT32 } from '../../base/int32.js';
import { input, option, says } from '../../base/named-text.js';
import { checkRange, LENGTH_PENALTY_RANGE, ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import type { BeamParams, EarlyStopping } from '../sequences/beam-params.js';
import type { RequestSpec } from '../sequences/request-spec.js';
import { readInt } from './tensor-values.js';

type Inputs = Record<string, Tensor>;

/** Defaults of TensorRT-LLM. */
const DEFAULT_LEN_PENALTY = 0;
const DEFAULT_EARLY_STOPPING = 1;

/**
 * Reads the number of sequences that a request generates side by side, and how:
 *
 *   beam_width              more than 1: beam search, with len_penalty and early_stopping (1: true, 0: false, else: never)
 *   num_return_sequences    number of sequences drawn, independently of each other
 *   best_of                 number drawn, of which the best num_return_sequences are returned
 */
export function readSequences(
  inputs: Inputs,
  maxBeamWidth: number,
): Pick<RequestSpec, 'beams' | 'numSequences' | 'numReturned'> {
  const beams = readBeams(inputs, maxBeamWidth);
  const numReturned = readInt(inputs, 'num_return_sequences', 1, 1, MAX_INT32);
  const numSequences = readInt(inputs, 'best_of', numReturned, 1, MAX_INT32);
  if (numSequences < numReturned) {
    throw new ParameterError(
      'best_of',
      says`${input('best_of')} is ${numSequences}; ${input('num_return_sequences')} asks for ${numReturned}, so it must be at least that.`,
    );
  }
  return beams === null ? { beams, numSequences, numReturned } : { beams, ...allOf(beams) };
}

function allOf({ width }: BeamParams) {
  return { numSequences: width, numReturned: width };
}

/** Reads both parameters with one beam too: they change nothing then, but an invalid value is a mistake. */
function readBeams(inputs: Inputs, maxBeamWidth: number): BeamParams | null {
  const width = readInt(inputs, 'beam_width', 1, 1, MAX_INT32);
  if (width > maxBeamWidth) {
    throw new ParameterError(
      'beam_width',
      says`${input('beam_width')} is ${width}; this engine takes at most ${option('maxBeamWidth')} = ${maxBeamWidth}.`,
    );
  }
  const stopping = readInt(inputs, 'early_stopping', DEFAULT_EARLY_STOPPING, 0, MAX_INT32);
  const lengthPenalty = (inputs.len_penalty?.data[0] as number | undefined) ?? DEFAULT_LEN_PENALTY;
  checkRange('len_penalty', lengthPenalty, LENGTH_PENALTY_RANGE);
  return width === 1 ? null : { width, lengthPenalty, earlyStopping: earlyStoppingOf(stopping) };
}

function earlyStoppingOf(value: number): EarlyStopping {
  return value > 1 ? 'never' : value === 1;
}
