import type { Config, ConfiguredModel } from '../config.js';
import type { ModelOptions } from '../serving/load-model.js';

/** Options with which a model of a configuration is loaded: its own, and those of all. */
export function loadingOptions(
  { model, options, adapters }: ConfiguredModel,
  { models: _, ...shared }: Config,
): ModelOptions {
  const takesAdapters = shared.allowRuntimeLora || Object.keys(adapters).length > 0;
  return { ...shared, ...options, model, ...(takesAdapters ? { adapters } : {}) };
}
