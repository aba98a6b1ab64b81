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
