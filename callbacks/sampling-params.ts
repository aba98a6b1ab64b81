import { input, type Name, type NamedText, says } from '../base/named-text.js';
import { SkeinError } from '../base/skein-error.js';

/** Parameters for choosing the next token of a request. SamplingBatch documents the order of operations. */
export interface SamplingParams {
  /** Divisor of the logits; 0 = greedy. Below 0.001 counts as 0: dividing logits by less only overflows. */
  temperature: number;
  /** Number of most probable tokens to draw from; 0 = off. */
  topK: number;
  /**
   * Draws from the most probable tokens whose probabilities sum to this; 1 = off; 0 keeps the most probable token only.
   */
  topP: number;
  /** Least probability of a token, relative to that of the most probable one; 0 = off. */
  minP: number;
  /**
   * Divides the positive logits, and multiplies the negative ones, of tokens in the prompt or generated so far; 1 =
   * off.
   */
  repetitionPenalty: number;
  /** Subtracted from the logit of each token already generated; 0 = off. */
  presencePenalty: number;
  /** Subtracted from a token's logit for each time it was generated; 0 = off. */
  frequencyPenalty: number;
  /** With n > 0 no n tokens in a row of prompt and generated tokens occur a second time; 0 = off. */
  noRepeatNgramSize: number;
  /** Tokens to generate before end_id and stop words may end the request. */
  minLength: number;
  /** Key of the random numbers (u64); null: a key is drawn at admission and returned with the final response. */
  seed: bigint | null;
}

export const DEFAULT_SAMPLING_PARAMS: Readonly<SamplingParams> = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  noRepeatNgramSize: 0,
  minLength: 0,
  seed: null,
};

/** Temperature below which a request is greedy. */
export const TEMPERATURE_MIN = 0.001;
export const SEED_MAX = 0xffff_ffff_ffff_ffffn;

export interface Range {
  min: number;
  max: number;
  integer: boolean;
}

/** Limits of each parameter, both ends included. */
export const SAMPLING_RANGES: Readonly<Record<Exclude<keyof SamplingParams, 'seed'>, Range>> = {
  temperature: { min: 0, max: 100, integer: false },
  topK: { min: 0, max: 2 ** 31 - 1, integer: true },
  topP: { min: 0, max: 1, integer: false },
  minP: { min: 0, max: 1, integer: false },
  repetitionPenalty: { min: 2 ** -7, max: 100, integer: false },
  presencePenalty: { min: -100, max: 100, integer: false },
  frequencyPenalty: { min: -100, max: 100, integer: false },
  noRepeatNgramSize: { min: 0, max: 2 ** 31 - 1, integer: true },
  minLength: { min: 0, max: 2 ** 31 - 1, integer: true },
};

/** Part of FailureKind that a parameter can cause. */
type ParameterFault = 'invalid' | 'unsupported' | 'tooLong' | 'overloaded';

/** An error for a value that a parameter does not take. The message names field, value and limit. */
export class ParameterError extends SkeinError {
  override name = 'ParameterError';
  override readonly code = 'SKEIN_PARAMETER';
  readonly field: string;
  readonly kind: ParameterFault;

  constructor(field: string, text: NamedText, kind: ParameterFault = 'invalid') {
    super(text);
    this.field = field;
    this.kind = kind;
  }
}

/** Throws ParameterError where `value` is outside `range`. @param field name of the parameter, a tensor or an option */
export function checkRange(field: string | Name, value: number, range: Range): void {
  const inside = value >= range.min && value <= range.max; // false for NaN
  if (inside && (!range.integer || Number.isInteger(value))) return;
  const kind = range.integer ? 'an integer' : 'a number';
  const name = typeof field === 'string' ? input(field) : field;
  throw new ParameterError(
    name.name,
    says`${name} is ${value}; it must be ${kind} from ${range.min} to ${range.max}.`,
  );
}

/** Fills in defaults and checks every range; throws ParameterError. */
export function resolveSamplingParams(given: Partial<SamplingParams>): SamplingParams {
  const params: SamplingParams = { ...DEFAULT_SAMPLING_PARAMS };
  for (const field of Object.keys(SAMPLING_RANGES) as (keyof typeof SAMPLING_RANGES)[]) {
    const value = given[field];
    if (value === undefined) continue;
    checkRange(field, value, SAMPLING_RANGES[field]);
    params[field] = value;
  }
  if (given.seed !== undefined && given.seed !== null) {
    if (given.seed < 0n || given.seed > SEED_MAX) {
      throw new ParameterError(
        'seed',
        says`${input('seed')} is ${given.seed}; it must be from 0 to ${SEED_MAX}.`,
      );
    }
    params.seed = given.seed;
  }
  return params;
}

/** True where the parameters leave only the most probable token. */
export function isGreedy(params: SamplingParams): boolean {
  return params.temperature < TEMPERATURE_MIN || params.topK === 1 || params.topP === 0;
}

/** True where a row needs its tokens as history. */
export function needsHistory(params: SamplingParams): boolean {
  const { repetitionPenalty, presencePenalty, frequencyPenalty, noRepeatNgramSize } = params;
  return repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0 || noRepeatNgramSize > 0;
}
