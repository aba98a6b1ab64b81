import { checkRange, ParameterError, type SamplingParams } from '../engine/decoding/sampling-params.js';
import type { RequestSpec } from '../engine/request-spec.js';
import type { BeamParams, EarlyStopping } from '../engine/sequences/beam-params.js';
import { MAX_INT32, readBool, readInt } from './tensor-values.js';
import type { Tensor } from './types.js';

type Inputs = Record<string, Tensor>;

/** Those of TensorRT-LLM. */
const DEFAULT_LEN_PENALTY = 0;
const DEFAULT_EARLY_STOPPING = 1;

/**
 * How many sequences a request generates side by side, and in which way:
 *
 *   beam_width              more than 1: beam search, with len_penalty and early_stopping (1: true, 0: false, else: never)
 *   num_return_sequences    so many are drawn, independently of each other
 *   best_of                 so many are drawn, and the best num_return_sequences of them returned
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
      `best_of is ${numSequences}; num_return_sequences asks for ${numReturned}, so it must be at least that.`,
    );
  }
  if (numSequences === 1 && beams === null) return { beams, numSequences, numReturned };
  if (beams !== null && numSequences > 1) {
    const field = numReturned > 1 ? 'num_return_sequences' : 'best_of';
    throw refused(field, 'beam search answers with all of its beams, as many as beam_width; leave it out');
  }
  if (numSequences > numReturned && readBool(inputs, 'streaming')) {
    throw refused(
      'best_of',
      'which sequences are the best is known at their end only; ask without streaming',
    );
  }
  if (readBool(inputs, 'return_generation_logits')) {
    const why = 'the logits of several sequences are not returned; ask for one sequence';
    throw refused('return_generation_logits', why);
  }
  return beams === null ? { beams, numSequences, numReturned } : { beams, ...allOf(beams) };
}

function allOf({ width }: BeamParams) {
  return { numSequences: width, numReturned: width };
}

/** Both parameters are read with one beam too: they change nothing, but a value that nobody takes is a mistake. */
function readBeams(inputs: Inputs, maxBeamWidth: number): BeamParams | null {
  const width = readInt(inputs, 'beam_width', 1, 1, MAX_INT32);
  if (width > maxBeamWidth) {
    throw new ParameterError(
      'beam_width',
      `beam_width is ${width}; this engine takes at most maxBeamWidth = ${maxBeamWidth}.`,
    );
  }
  const stopping = readInt(inputs, 'early_stopping', DEFAULT_EARLY_STOPPING, 0, MAX_INT32);
  const lengthPenalty = (inputs.len_penalty?.data[0] as number | undefined) ?? DEFAULT_LEN_PENALTY;
  checkRange('len_penalty', lengthPenalty, { min: -100, max: 100, integer: false });
  return width === 1 ? null : { width, lengthPenalty, earlyStopping: earlyStoppingOf(stopping) };
}

function earlyStoppingOf(value: number): EarlyStopping {
  return value > 1 ? 'never' : value === 1;
}

/** Throws where the request asks for something that beam search cannot do. */
export function checkBeamSearch(inputs: Inputs, { temperature, topK, topP, minP }: SamplingParams): void {
  const draws = 'beam search takes the most probable tokens and draws none';
  if (temperature !== 0 && temperature !== 1) {
    throw refused('temperature', `${draws}; leave it out or make it 1`);
  }
  if (topK > 1) throw refused('runtime_top_k', `${draws}; leave it out or make it 1`);
  if (topP !== 0 && topP !== 1) throw refused('runtime_top_p', `${draws}; leave it out or make it 1`);
  if (minP !== 0) throw refused('runtime_min_p', `${draws}; leave it out or make it 0`);
  if ((inputs.guided_decoding_guide?.data.length ?? 0) > 0) {
    throw refused(
      'guided_decoding_guide',
      'beams exchange what they have, and no guide follows that; ask for one beam',
    );
  }
  if ((inputs.draft_input_ids?.data.length ?? 0) > 0) {
    throw refused('draft_input_ids', 'the beams of a search have no draft; leave it out or ask for one beam');
  }
}

function refused(field: string, why: string): ParameterError {
  return new ParameterError(field, `${field} is refused: ${why}.`);
}
