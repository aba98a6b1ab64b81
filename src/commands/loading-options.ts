import { UsageError } from '../errors/user-errors.js';
import type { ModelOptions } from '../serving/model-options.js';
import type { Config, ConfiguredModel } from '../settings/config.js';

const NO_KV_EVENTS = {
  kvEventsEndpoint: undefined,
  kvEventsReplayEndpoint: undefined,
  kvEventsTopic: undefined,
  kvEventsCurveKeyFile: undefined,
  kvEventsCurvePeerFile: undefined,
};

/** Options with which a model of a configuration is loaded: its own, and those of all. @throws UsageError where they contradict each other */
export function loadingOptions(entry: ConfiguredModel, config: Config): ModelOptions {
  const { name, model, options, adapters } = entry;
  const { models, ...all } = config;
  // An address can be taken once: what clients load has none, unless it has its own.
  const shared = models.includes(entry) ? all : { ...all, ...NO_KV_EVENTS };
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
