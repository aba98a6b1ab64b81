import { closestName } from '../../base/did-you-mean.js';
import { option, says } from '../../base/named-text.js';
import type { FunctionCallbacks, GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import { KV_CACHE_OPTIONS } from '../../callbacks/options/kv-cache-options.js';
import { MANAGER_EVENTS, MANAGER_OPTIONS } from '../../callbacks/options/manager-options.js';
import { OPTIONAL_PARAMS } from '../../callbacks/options/optional-params.js';
import { PEFT_CACHE_OPTIONS } from '../../callbacks/options/peft-cache-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { checkRanks } from './check-ranks.js';
import { checkValues } from './check-values.js';
import { checkOptionalParams } from './engine-limits.js';

/** Throws a ParameterError, naming field, value and limit, for options that cannot work with any engine. */
export function checkManagerOptions(options: GptManagerOptions): void {
  checkOptionNames(options);
  for (const field of Object.keys(MANAGER_OPTIONS) as (keyof typeof MANAGER_OPTIONS)[]) {
    if (options[field] !== undefined && options[field] !== '') continue;
    const { expected } = MANAGER_OPTIONS[field].values;
    throw new ParameterError(field, says`${option(field)} is missing; it must be ${expected}.`);
  }
  checkValues('manager', options);
  checkCallbacks(options);
  checkOptionalParams(options.optionalParams ?? {}, options.modelType);
  checkRanks(options);
  checkPostProcessors(options);
}

/** Refuses post-processors that are functions where the loop cannot call them. */
function checkPostProcessors({ modelType, optionalParams, ...options }: GptManagerOptions): void {
  for (const field of ['logitsPostProcessors', 'logitsPostProcessorBatched'] as const) {
    if (options[field] === undefined) continue;
    if (modelType === 'V1') {
      throw new ParameterError(
        field,
        says`${option(field)} is refused: V1 has no logits post-processors; use an in-flight ${option('modelType')} or leave it out.`,
      );
    }
    if (optionalParams?.isolate) {
      throw new ParameterError(
        field,
        says`${option(field)} is refused: an engine in a process of its own cannot call functions of this one; give ${option('logitsPostProcessorModule')}, or leave isolate out.`,
      );
    }
  }
}

function checkCallbacks(options: GptManagerOptions): void {
  if (options.callbackModule !== undefined) {
    for (const name of [
      'getInferenceRequests',
      'sendResponse',
      'pollStopSignals',
      'returnBatchManagerStats',
    ] as const) {
      if (options[name] === undefined) continue;
      throw new ParameterError(
        name,
        says`${option(name)} is given together with callbackModule; give functions or a module, not both.`,
      );
    }
    return;
  }
  for (const name of ['getInferenceRequests', 'sendResponse'] as const) {
    if (typeof options[name] === 'function') continue;
    throw new ParameterError(
      name,
      says`${option(name)} is missing; it must be a function (or give callbackModule).`,
    );
  }
}

/** Name of each callback: this does not compile unless it has exactly those of the interface. */
const CALLBACKS = {
  getInferenceRequests: true,
  sendResponse: true,
  pollStopSignals: true,
  returnBatchManagerStats: true,
  callbackModule: true,
} satisfies Record<keyof Required<FunctionCallbacks>, true>;

/** Refuses unknown options of a GptManager: ignoring one would give wrong answers. @throws ParameterError */
function checkOptionNames(options: GptManagerOptions): void {
  checkNames('', options, { ...MANAGER_OPTIONS, optionalParams: true, ...CALLBACKS, ...MANAGER_EVENTS });
  // A custom executor may have parameters of its own.
  const own = options.optionalParams?.executorModule === undefined ? {} : options.optionalParams;
  const params = { kvCacheConfig: true, peftCacheManagerConfig: true, ...OPTIONAL_PARAMS };
  checkNames('optionalParams', options.optionalParams, { ...own, ...params });
  checkNames('optionalParams.kvCacheConfig', options.optionalParams?.kvCacheConfig, KV_CACHE_OPTIONS);
  const ofAdapters = options.optionalParams?.peftCacheManagerConfig;
  checkNames('optionalParams.peftCacheManagerConfig', ofAdapters, PEFT_CACHE_OPTIONS);
}

function checkNames(path: string, given: unknown, known: object): void {
  if (given === undefined && path !== '') return;
  if (typeof given !== 'object' || given === null) {
    const what = path === '' ? 'GptManager needs an object of options' : `${path} must be an object`;
    throw new ParameterError(path === '' ? 'options' : path, `${what}; it was given ${String(given)}.`);
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known);
    const meant = closestName(name, names);
    const hint = meant === null ? `there are ${names.join(', ')}.` : `did you mean ${meant}?`;
    const full = path === '' ? name : `${path}.${name}`;
    throw new ParameterError(full, says`${option(full)} is not an option of GptManager; ${hint}`);
  }
}
