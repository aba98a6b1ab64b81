import type { Config, ConfiguredModel } from '../config.js';
import type { ModelOptions } from '../serving/load-model.js';
import { UsageError } from '../usage-error.js';

/** Options with which a model of a configuration is loaded: its own, and those of all. @throws UsageError where they contradict each other */
export function loadingOptions(
  { name, model, options, adapters }: ConfiguredModel,
  { models: _, ...shared }: Config,
): ModelOptions {
  const names = Object.keys(adapters);
  const takesAdapters =
    options.enableLora ?? shared.enableLora ?? (shared.allowRuntimeLora || names.length > 0);
  if (!takesAdapters && names.length > 0) {
    throw new UsageError(
      `The model ${name} takes no LoRA adapters (enable-lora is false), and is given ${names.join(', ')}; leave one of them out.`,
    );
  }
  return { ...shared, ...options, model, ...(takesAdapters ? { adapters } : {}) };
}
