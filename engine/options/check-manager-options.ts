import type { GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import { checkRange, ParameterError } from '../../callbacks/sampling-params.js';
import { checkOptionalParams } from './engine-limits.js';
import { checkOptionNames } from './option-names.js';

/** Throws a ParameterError, naming field, value and limit, for options that cannot work whatever the engine. */
export function checkManagerOptions(options: GptManagerOptions): void {
  checkOptionNames(options);
  const { enginePath, modelType, maxBeamWidth, schedulerPolicy } = options;
  if (typeof enginePath !== 'string' || enginePath === '') {
    throw new ParameterError(
      'enginePath',
      'enginePath is missing; it must be the path of an engine directory.',
    );
  }
  if (modelType !== 'V1' && modelType !== 'InflightBatching' && modelType !== 'InflightFusedBatching') {
    throw new ParameterError(
      'modelType',
      `modelType is ${String(modelType)}; it must be V1, InflightBatching or InflightFusedBatching.`,
    );
  }
  checkRange('maxBeamWidth', maxBeamWidth, { min: 1, max: 1024, integer: true });
  if (schedulerPolicy !== 'MAX_UTILIZATION' && schedulerPolicy !== 'GUARANTEED_NO_EVICT') {
    throw new ParameterError(
      'schedulerPolicy',
      `schedulerPolicy is ${String(schedulerPolicy)}; it must be MAX_UTILIZATION or GUARANTEED_NO_EVICT.`,
    );
  }
  checkCallbacks(options);
  checkOptionalParams(options.optionalParams ?? {}, modelType);
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
        `${name} is given beside callbackModule; give functions or a module, not both.`,
      );
    }
    return;
  }
  for (const name of ['getInferenceRequests', 'sendResponse'] as const) {
    if (typeof options[name] === 'function') continue;
    throw new ParameterError(name, `${name} is missing; it must be a function (or give callbackModule).`);
  }
}
