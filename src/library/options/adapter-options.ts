import {
  isObject,
  NAME,
  rule,
  SWITCH,
  shown,
  type Values,
  wholeNumber,
} from '../../../base/option-values.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import type { AdapterLimits } from '../../../models/adapters/adapter-weights.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';

/** Options of Skein.loadAdapter. */
export interface LoadAdapterOptions {
  /** Replaces an adapter of this name, whose requests in flight continue as they began. Default false. */
  replace?: boolean | undefined;
  /** Signal whose abort ends the loading. */
  signal?: AbortSignal | undefined;
}

const LOAD_RULES: Rules<LoadAdapterOptions> = { replace: SWITCH, signal: SIGNAL };

const LIMIT_RULES: Rules<AdapterLimits> = {
  maxRank: wholeNumber(1, 2 ** 20),
  maxBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
};

const CONFIG = rule(
  "a model's configuration, such as manifest.config of what openEngine returns,",
  (value) => isObject(value) && typeof value.architecture === 'string' && Number.isInteger(value.numLayers),
);

/** @throws ParameterError for an invalid argument of loadAdapter; its name is checked where it is taken */
export function checkLoadAdapter(path: unknown, options: unknown): asserts path is string {
  checkArgument('loadAdapter', 'path', NAME, path);
  checkOptions('loadAdapter', '{ replace: true }', options, LOAD_RULES);
}

/** @throws ParameterError for an invalid argument of openAdapter */
export function checkOpenAdapter(path: unknown, config: unknown, limits: unknown): void {
  checkArgument('openAdapter', 'path', NAME, path);
  checkArgument('openAdapter', 'config', CONFIG, config);
  checkOptions('openAdapter', '{ maxRank: 64 }', limits, LIMIT_RULES);
  if ((limits as Partial<AdapterLimits>).maxRank === undefined) {
    throw new ParameterError('maxRank', 'openAdapter needs the limit maxRank, such as { maxRank: 64 }.');
  }
}

function checkArgument(call: string, name: string, { expected, accepts }: Values, value: unknown): void {
  if (accepts(value)) return;
  throw new ParameterError(name, `${call} needs ${expected} as its ${name}; it was given ${shown(value)}.`);
}

function checkOptions<Options>(call: string, example: string, options: unknown, rules: Rules<Options>): void {
  const fault = optionFault<Options>(call, example, options, rules);
  if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
}
