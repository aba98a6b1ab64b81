import { input, type Name, type NamedText, says } from '../base/named-text.js';
import { SkeinError } from '../base/skein-error.js';
import type { RecommendedNames } from '../models/checkpoints/recommended-sampling.js';
import type { Bounds, NamedParameter, NamesOf, ValuesOf } from './request/parameter.js';
import { NAMED_PARAMETERS, type PARAMETERS, type ParameterName } from './request/parameters.js';

/** Largest absolute value of a bias: far above any logit, far below what adding could overflow. */
export const BIAS_MAX = 1e30;

/** Parameters for choosing the next token of a request. SamplingBatch documents the order of operations. */
export type SamplingParams = ValuesOf<typeof PARAMETERS>;

/** Names of the parameters that are numbers. */
export type NumberParam = NamesOf<typeof PARAMETERS, 'number' | 'integer'>;

const isNumber = (one: NamedParameter<ParameterName>): one is NamedNumber =>
  one.parameter.kind === 'number' || one.parameter.kind === 'integer';

type NamedNumber = NamedParameter<NumberParam> & { parameter: { range: Bounds } };

/** The parameters that are numbers, with all of their names. */
const NUMBER_PARAMETERS: readonly NamedNumber[] = NAMED_PARAMETERS.filter(isNumber);

export const DEFAULT_SAMPLING_PARAMS = Object.fromEntries(
  NAMED_PARAMETERS.map(({ name, parameter }) => [name, parameter.default]),
) as Readonly<SamplingParams>;

/** Temperature below which a request is greedy. */
const TEMPERATURE_MIN = 0.001;
const SEED_MAX = 0xffff_ffff_ffff_ffffn;

export interface Range {
  min: number;
  max: number;
  integer: boolean;
}

/** Exponent by which a beam's length divides its sum of log-probs. */
export const LENGTH_PENALTY_RANGE: Range = { min: -100, max: 100, integer: false };

/** Limits of each parameter, both ends included. */
export const SAMPLING_RANGES = Object.fromEntries(
  NUMBER_PARAMETERS.map(({ name, parameter: { range, kind } }) => {
    const [min, max] = range;
    return [name, { min, max, integer: kind === 'integer' }];
  }),
) as Readonly<Record<NumberParam, Range>>;

/** What models' files recommend, by the names of the HTTP API: parameters, and the limit of tokens. */
export const RECOMMENDED_NAMES: RecommendedNames = Object.fromEntries([
  ...NAMED_PARAMETERS.flatMap(({ field, parameter: { recommendedAs } }) =>
    recommendedAs === undefined ? [] : [[field, recommendedAs] as const],
  ),
  ['max_tokens', { huggingFace: 'max_new_tokens' }],
]);

/** Tensors of which one is enough for a request to draw its tokens; without all of them it is greedy. */
export const DRAWING_TENSORS: readonly string[] = NAMED_PARAMETERS.filter(
  ({ parameter }) => parameter.neutralToBeams !== undefined,
).map(({ tensor }) => tensor);

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
    says`${name} is ${shownValue(value)}; it must be ${kind} from ${range.min} to ${range.max}.`,
  );
}

/** A value as a program writes it, so that '1' and 1n are not taken for 1. */
export function shownValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 64)}'`;
  return typeof value === 'bigint' ? `${value}n` : String(value).slice(0, 64);
}

const FLAGS = NAMED_PARAMETERS.filter(({ parameter }) => parameter.kind === 'flag').map(
  ({ name }) => name as NamesOf<typeof PARAMETERS, 'flag'>,
);

/** Fills in defaults and checks every range; throws ParameterError. */
export function resolveSamplingParams(given: Partial<SamplingParams>): SamplingParams {
  const params: SamplingParams = { ...DEFAULT_SAMPLING_PARAMS };
  for (const { name } of NUMBER_PARAMETERS) {
    const value = given[name];
    if (value === undefined) continue;
    checkRange(name, value, SAMPLING_RANGES[name]);
    params[name] = value;
  }
  for (const name of FLAGS) params[name] = given[name] ?? false;
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

/** A key of random numbers for a request that brings none. */
export function drawSeed(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0]!;
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
