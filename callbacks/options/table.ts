import { KV_CACHE_OPTIONS } from './kv-cache-options.js';
import { MANAGER_EVENTS, MANAGER_OPTIONS } from './manager-options.js';
import type { EngineOption } from './option.js';
import { OPTIONAL_PARAMS } from './optional-params.js';

/** Where in GptManagerOptions an option stands: in it, in its optionalParams, or in the kvCacheConfig of these. */
export type EngineLevel = 'manager' | 'optionalParams' | 'kvCache';

type Table = Readonly<Record<string, EngineOption>>;

/** The options of each level by their fields. */
export const ENGINE_OPTIONS: Readonly<Record<EngineLevel, Table>> = {
  manager: { ...MANAGER_OPTIONS, ...MANAGER_EVENTS },
  optionalParams: OPTIONAL_PARAMS,
  kvCache: KV_CACHE_OPTIONS,
};

/** What stands before the name of a field in an error of the engine. */
const IN_ERRORS: Readonly<Record<EngineLevel, string>> = {
  manager: '',
  optionalParams: '',
  kvCache: 'kvCacheConfig.',
};

/** What stands before it in GptManagerOptions. */
const PATHS: Readonly<Record<EngineLevel, string>> = {
  manager: '',
  optionalParams: 'optionalParams.',
  kvCache: 'optionalParams.kvCacheConfig.',
};

export interface EngineOptionEntry {
  level: EngineLevel;
  /** Its name in the object that it stands in. */
  field: string;
  /** As errors of the engine name it. */
  nameInErrors: string;
  /** From GptManagerOptions on. */
  path: string;
  option: EngineOption;
}

/** Every option of the engine, with where it stands. */
export const ENGINE_TABLE: readonly EngineOptionEntry[] = (
  Object.keys(ENGINE_OPTIONS) as EngineLevel[]
).flatMap((level) =>
  Object.entries(ENGINE_OPTIONS[level]).map(([field, option]) => ({
    level,
    field,
    nameInErrors: IN_ERRORS[level] + field,
    path: PATHS[level] + field,
    option,
  })),
);
