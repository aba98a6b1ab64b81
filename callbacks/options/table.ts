import { KV_CACHE_OPTIONS } from './kv-cache-options.js';
import { MANAGER_EVENTS, MANAGER_OPTIONS } from './manager-options.js';
import type { EngineOption } from './option.js';
import { OPTIONAL_PARAMS } from './optional-params.js';
import { PEFT_CACHE_OPTIONS } from './peft-cache-options.js';

/** Place of an option in GptManagerOptions: at the top, in optionalParams, or in one of the objects of these. */
export type EngineLevel = 'manager' | 'optionalParams' | 'kvCache' | 'peftCache';

type Table = Readonly<Record<string, EngineOption>>;

/** All options of the engine by level, then by field. */
const ENGINE_OPTIONS: Readonly<Record<EngineLevel, Table>> = {
  manager: { ...MANAGER_OPTIONS, ...MANAGER_EVENTS },
  optionalParams: OPTIONAL_PARAMS,
  kvCache: KV_CACHE_OPTIONS,
  peftCache: PEFT_CACHE_OPTIONS,
};

/** Prefix of a field's name in errors of the engine. */
const IN_ERRORS: Readonly<Record<EngineLevel, string>> = {
  manager: '',
  optionalParams: '',
  kvCache: 'kvCacheConfig.',
  peftCache: 'peftCacheManagerConfig.',
};

/** Prefix of a field's name in GptManagerOptions. */
const PATHS: Readonly<Record<EngineLevel, string>> = {
  manager: '',
  optionalParams: 'optionalParams.',
  kvCache: 'optionalParams.kvCacheConfig.',
  peftCache: 'optionalParams.peftCacheManagerConfig.',
};

export interface EngineOptionEntry {
  level: EngineLevel;
  /** Name of the field in the object of its level. */
  field: string;
  /** Name of the option in errors of the engine. */
  nameInErrors: string;
  /** Path from GptManagerOptions to the field. */
  path: string;
  option: EngineOption;
}

/** Every option of the engine, with its level and names. */
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
