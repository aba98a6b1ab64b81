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
  /** Number of last tokens of prompt and answer that these three penalties see; -1: all; 0: none. */
  penaltyLastN: number;
  /** With n > 0 no n tokens in a row of prompt and generated tokens occur a second time; 0 = off. */
  noRepeatNgramSize: number;
  /** Draws among the tokens whose surprise is nearest to the entropy, until they exceed this probability; 1 = off. */
  typicalP: number;
  /** Leaves out logits more than this many standard deviations below the greatest; 0 = off. */
  topNSigma: number;
  /** Probability that XTC leaves out, at a token, all tokens of at least xtcThreshold but the least probable one; 0 = off. */
  xtcProbability: number;
  xtcThreshold: number;
  /** Temperatures up to this much above and below `temperature` are used, by the entropy; 0 = off. */
  dynatempRange: number;
  dynatempExponent: number;
  /** The filters see the distribution at temperature 1, and `temperature` applies to what they keep. */
  temperatureLast: boolean;
  /** Version of mirostat, which keeps the surprise of the tokens near a target, in place of the filters; 0 = off. */
  mirostat: number;
  /** Target surprise of a token in bits, and how fast mirostat learns. */
  mirostatTau: number;
  mirostatEta: number;
  /**
   * What DRY takes from the logit of a token that goes on with a repetition of dryAllowedLength tokens; with each further token
   * dryBase times as much; 0 = off.
   */
  dryMultiplier: number;
  dryBase: number;
  dryAllowedLength: number;
  /** Number of last tokens in which DRY looks for repetitions; -1: all; 0: off. */
  dryPenaltyLastN: number;
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
  penaltyLastN: -1,
  noRepeatNgramSize: 0,
  typicalP: 1,
  topNSigma: 0,
  xtcProbability: 0,
  xtcThreshold: 0.1,
  dynatempRange: 0,
  dynatempExponent: 1,
  temperatureLast: false,
  mirostat: 0,
  mirostatTau: 5,
  mirostatEta: 0.1,
  dryMultiplier: 0,
  dryBase: 1.75,
  dryAllowedLength: 2,
  dryPenaltyLastN: -1,
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

/** Name of a parameter that is a number. */
export type NumberParam = Exclude<keyof SamplingParams, 'seed' | 'temperatureLast'>;

/** Limits of each parameter, both ends included. */
export const SAMPLING_RANGES: Readonly<Record<NumberParam, Range>> = {
  temperature: { min: 0, max: 100, integer: false },
  topK: { min: 0, max: 2 ** 31 - 1, integer: true },
  topP: { min: 0, max: 1, integer: false },
  minP: { min: 0, max: 1, integer: false },
  repetitionPenalty: { min: 2 ** -7, max: 100, integer: false },
  presencePenalty: { min: -100, max: 100, integer: false },
  frequencyPenalty: { min: -100, max: 100, integer: false },
  penaltyLastN: { min: -1, max: 2 ** 31 - 1, integer: true },
  noRepeatNgramSize: { min: 0, max: 2 ** 31 - 1, integer: true },
  typicalP: { min: 0, max: 1, integer: false },
  topNSigma: { min: 0, max: 100, integer: false },
  xtcProbability: { min: 0, max: 1, integer: false },
  xtcThreshold: { min: 0, max: 1, integer: false },
  dynatempRange: { min: 0, max: 100, integer: false },
  dynatempExponent: { min: 0, max: 100, integer: false },
  mirostat: { min: 0, max: 2, integer: true },
  mirostatTau: { min: 0, max: 100, integer: false },
  mirostatEta: { min: 0, max: 10, integer: false },
  dryMultiplier: { min: 0, max: 1000, integer: false },
  dryBase: { min: 1, max: 1000, integer: false },
  dryAllowedLength: { min: 1, max: 2 ** 31 - 1, integer: true },
  dryPenaltyLastN: { min: -1, max: 2 ** 31 - 1, integer: true },
  minLength: { min: 0, max: 2 ** 31 - 1, integer: true },
};

/** Parameter of each tensor that carries one number. */
export const SAMPLING_TENSORS: Readonly<Record<string, NumberParam>> = {
  temperature: 'temperature',
  runtime_top_k: 'topK',
  runtime_top_p: 'topP',
  runtime_min_p: 'minP',
  repetition_penalty: 'repetitionPenalty',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  penalty_last_n: 'penaltyLastN',
  no_repeat_ngram_size: 'noRepeatNgramSize',
  runtime_typical_p: 'typicalP',
  top_n_sigma: 'topNSigma',
  xtc_probability: 'xtcProbability',
  xtc_threshold: 'xtcThreshold',
  dynatemp_range: 'dynatempRange',
  dynatemp_exponent: 'dynatempExponent',
  mirostat: 'mirostat',
  mirostat_tau: 'mirostatTau',
  mirostat_eta: 'mirostatEta',
  dry_multiplier: 'dryMultiplier',
  dry_base: 'dryBase',
  dry_allowed_length: 'dryAllowedLength',
  dry_penalty_last_n: 'dryPenaltyLastN',
  min_length: 'minLength',
};

/** Tensors of which one is enough for a request to draw its tokens; without all of them it is greedy. */
export const DRAWING_TENSORS = [
  'temperature',
  'runtime_top_k',
  'runtime_top_p',
  'runtime_min_p',
  'runtime_typical_p',
  'top_n_sigma',
  'xtc_probability',
  'dynatemp_range',
  'mirostat',
] as const;

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
  const inside = typeof value === 'number' && value >= range.min && value <= range.max; // false for NaN
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
  params.temperatureLast = given.temperatureLast ?? false;
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
  const { repetitionPenalty, presencePenalty, frequencyPenalty, noRepeatNgramSize, penaltyLastN } = params;
  const hasPenalty = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
  return (hasPenalty && penaltyLastN !== 0) || noRepeatNgramSize > 0;
}
