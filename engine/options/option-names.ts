import { closestName } from '../../base/did-you-mean.js';
import { option, says } from '../../base/named-text.js';
import type { FunctionCallbacks, GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import { KV_CACHE_OPTIONS } from '../../callbacks/options/kv-cache-options.js';
import { MANAGER_EVENTS, MANAGER_OPTIONS } from '../../callbacks/options/manager-options.js';
import { OPTIONAL_PARAMS } from '../../callbacks/options/optional-params.js';
import { PEFT_CACHE_OPTIONS } from '../../callbacks/options/peft-cache-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/** Name of each callback: this does not compile unless it has exactly those of the interface. */
const CALLBACKS = {
  getInferenceRequests: true,
  sendResponse: true,
  pollStopSignals: true,
  returnBatchManagerStats: true,
  callbackModule: true,
} satisfies Record<keyof Required<FunctionCallbacks>, true>;

/** Refuses unknown options of a GptManager: ignoring one would give wrong answers. @throws ParameterError */
export function checkOptionNames(options: GptManagerOptions): void {
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
