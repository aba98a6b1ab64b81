import { basename } from 'node:path';
import type { RunningModel } from '../serving/running-model.js';
import { servedModel } from '../serving/serve-model.js';
import type { ServedModel } from '../serving/served-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';

/** A running model and its configuration. */
export interface LoadedEntry {
  entry: ConfiguredModel;
  loaded: RunningModel;
}

/** A running model as it is served, by its own options and those of all models. */
export function servedModelOf({ entry, loaded }: LoadedEntry, config: Config): ServedModel {
  const { name: id, aliases, model, options } = entry;
  const {
    maxActiveRequests,
    maxQueuedRequests: maxQueueSize,
    maxLogprobs: maxLogProbs,
    ...rest
  } = { ...config, ...options };
  const { defaultMaxTokens, toolCallParser, reasoningParser } = rest;
  const of = {
    maxActiveRequests,
    maxQueueSize,
    maxLogProbs,
    defaultMaxTokens,
    toolCallParser,
    reasoningParser,
  };
  return servedModel(loaded, { id, aliases, fileName: basename(model), ...of });
}
