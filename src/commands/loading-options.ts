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

const NO_DISK = { diskCache: undefined, diskCacheBytes: undefined };

/** Options with which a model of a configuration is loaded: its own, and those of all. @throws UsageError where they contradict each other */
export function loadingOptions(entry: ConfiguredModel, config: Config): ModelOptions {
  const { name, model, options, adapters } = entry;
  const { models, ...all } = config;
  // An address can be taken once: what clients load has none, unless it has its own.
  const named = models.includes(entry) ? all : { ...all, ...NO_KV_EVENTS };
  const shared = lacksCacheSecret(config) ? { ...named, ...NO_DISK } : named;
  const names = Object.keys(adapters);
  const takesAdapters =
    options.enableLora ?? shared.enableLora ?? (shared.allowRuntimeLora || names.length > 0);
  if (!takesAdapters && names.length > 0) {
    throw new UsageError(
      `The model ${name} takes no LoRA adapters (enable-lora is false), and is given ${names.join(', ')}; leave one of them out.`,
    );
  }
  const own = lacksCacheSecret(config) ? { ...options, ...NO_DISK } : options;
  const given = { ...shared, ...own, model, ...(takesAdapters ? { adapters } : {}) };
  // The limit of all may be meant for others, which have a folder.
  const isOfOthers = given.diskCache === undefined && own.diskCacheBytes === undefined && hasDisk(config);
  return isOfOthers ? { ...given, ...NO_DISK } : given;
}

function hasDisk({ diskCache, models = [] }: Partial<Config>): boolean {
  return diskCache !== undefined || models.some(({ options }) => options.diskCache !== undefined);
}

/** True where prompts of API keys would be written to a disk under salts that end with this process: no later one could find them. */
export function lacksCacheSecret(config: Partial<Config>): boolean {
  const { apiKey = [], apiKeyFile, cacheSecretFile } = config;
  return hasDisk(config) && (apiKey.length > 0 || apiKeyFile !== undefined) && cacheSecretFile === undefined;
}
