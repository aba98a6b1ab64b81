import { option, says } from '../../base/named-text.js';
import type { GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import { MANAGER_OPTIONS } from '../../callbacks/options/manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { checkRanks } from './check-ranks.js';
import { checkValues } from './check-values.js';
import { checkOptionalParams } from './engine-limits.js';
import { checkOptionNames } from './option-names.js';

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
        says`${option(name)} is given beside callbackModule; give functions or a module, not both.`,
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
