import { MAX_INT32 } from '../../base/int32.js';
import { isObject, rangeText } from '../../base/option-values.js';
import type { Parameter } from '../../callbacks/request/parameter.js';
import { PARAMETERS } from '../../callbacks/request/parameters.js';
import {
  DEFAULT_SAMPLING_PARAMS,
  type NumberParam,
  type Range,
  SAMPLING_RANGES,
} from '../../callbacks/sampling-params.js';
import type { Recommendation, RecommendedSampling } from '../../models/checkpoints/recommended-sampling.js';
import { fieldOfOption, optionOfField } from '../request-vocabulary.js';
import type { SamplingOptions, TextRequest } from './text-generation.js';

type Sampler = NumberParam & keyof SamplingOptions;

/** Settings of a request that holds none of its own: those that the model's makers recommend. */
export type SamplingDefaults = { [Name in Sampler]?: number } & {
  /** Most tokens of an answer. */
  maxTokens?: number;
};

/** Settings that hold, and a sentence for each recommendation that is left out. */
export interface CheckedSampling {
  defaults: SamplingDefaults;
  leftOut: string[];
}

const { minLength: _, ...SAMPLER_RANGES } = SAMPLING_RANGES;
const RANGES: Readonly<Record<string, Range>> = {
  ...SAMPLER_RANGES,
  maxTokens: { min: 1, max: MAX_INT32, integer: true },
};

/** Takes the recommendations that a request could have; the others are left out, since the model serves without them too. */
export function checkedSampling(recommended: RecommendedSampling): CheckedSampling {
  const defaults: SamplingDefaults = {};
  const leftOut: string[] = [];
  for (const [field, recommendation] of Object.entries(recommended)) {
    const option = optionOfField(field) as keyof SamplingDefaults | null;
    const range = option === null ? undefined : RANGES[option];
    // An engine directory is a folder that anybody may edit.
    if (option === null || range === undefined || !isObject(recommendation)) continue;
    const { value, from, key } = recommendation as Recommendation;
    const { isOffBelowZero }: Partial<Parameter> = option === 'maxTokens' ? {} : PARAMETERS[option];
    const meant = isOffBelowZero && value === -1 ? 0 : value;
    if (isWithin(meant, range)) defaults[option] = meant;
    else
      leftOut.push(
        `${from} recommends ${key} ${value}, which should be ${rangeText(range)}; it is left out.`,
      );
  }
  return { defaults, leftOut };
}

/** The settings in a value from another machine that a request could have. */
export function knownDefaults(told: unknown): SamplingDefaults {
  const given = isObject(told) ? told : {};
  const defaults: SamplingDefaults = {};
  for (const [option, range] of Object.entries(RANGES)) {
    const value = Object.hasOwn(given, option) ? given[option] : undefined;
    if (isWithin(value, range)) defaults[option as keyof SamplingDefaults] = value;
  }
  return defaults;
}

function isWithin(value: unknown, { min, max, integer }: Range): value is number {
  return typeof value === 'number' && value >= min && value <= max && (!integer || Number.isInteger(value));
}

/** The settings by the names of the HTTP API. */
export function samplingFields(defaults: SamplingDefaults = {}): Record<string, number> {
  return Object.fromEntries(
    Object.entries(defaults).map(([option, value]) => [fieldOfOption(option), value]),
  );
}

const { temperature, topK, topP, minP } = DEFAULT_SAMPLING_PARAMS;

/** Settings that llama.cpp's answers name even if neither the request nor the model has them, in the API's names. */
export const ALWAYS_SHOWN: Readonly<Record<string, number>> = samplingFields({
  temperature,
  topK,
  topP,
  minP,
});

/**
 * A request with the model's defaults for the settings that it leaves open. A beam search draws nothing, and
 * has none of them; a penalty window and n-grams exclude each other, so a request that has one does not get
 * the other.
 */
export function withDefaults<Request extends Partial<TextRequest>>(
  { maxTokens: _, ...defaults }: SamplingDefaults = {},
  request: Request,
): Request {
  if ((request.beams?.width ?? 1) > 1) return request;
  const holds = { ...defaults };
  if ((request.noRepeatNgramSize ?? holds.noRepeatNgramSize ?? 0) > 0 && request.penaltyLastN === undefined) {
    delete holds.penaltyLastN;
  }
  if ((request.penaltyLastN ?? -1) !== -1) delete holds.noRepeatNgramSize;
  const own = Object.entries(request).filter(([, value]) => value !== undefined);
  return { ...holds, ...Object.fromEntries(own) } as Request;
}
