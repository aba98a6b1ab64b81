import type { IterationStats } from './iteration-stats.js';
import type { KV_CACHE_OPTIONS } from './options/kv-cache-options.js';
import type { MANAGER_EVENTS, MANAGER_OPTIONS } from './options/manager-options.js';
import type { Fields, GivenFields } from './options/option.js';
import type { OPTIONAL_PARAMS } from './options/optional-params.js';
import type { PEFT_CACHE_OPTIONS } from './options/peft-cache-options.js';
import type {
  GetInferenceRequestsCallback,
  PollStopSignalsCallback,
  ReturnBatchManagerStatsCallback,
  SendResponseCallback,
} from './types.js';

export {
  EXECUTOR_NAMES,
  type ExecutorChoice,
  type ExecutorName,
  type InstructionSet,
  type ManagerState,
  type ModelType,
  type PinThreads,
  type Speculate,
  type StatsFormat,
} from './options/words.js';
export type { IterationStats };

// Each option is written once, with its range and default, in the tables of callbacks/options/; these types are made of
// them.

/** Size and sharing of the KV cache. */
export interface KvCacheConfig extends Fields<typeof KV_CACHE_OPTIONS> {}

/** Size of the caches of LoRA adapters. */
export interface PeftCacheConfig extends Fields<typeof PEFT_CACHE_OPTIONS> {}

/** The fields of TensorRT-LLM's TrtGptModelOptionalParams, and those that a CPU engine needs besides. */
export interface OptionalParams extends Fields<typeof OPTIONAL_PARAMS> {
  kvCacheConfig?: KvCacheConfig;
  /** Given, also as {}: requests may bring LoRA adapters. Default: they are refused. */
  peftCacheManagerConfig?: PeftCacheConfig;
}

/** The callbacks as functions of the host's thread. */
export interface FunctionCallbacks {
  getInferenceRequests: GetInferenceRequestsCallback;
  sendResponse: SendResponseCallback;
  pollStopSignals?: PollStopSignalsCallback;
  returnBatchManagerStats?: ReturnBatchManagerStatsCallback;
  callbackModule?: undefined;
}

/** The callbacks as a module, imported and called inside the worker: see CallbackModule. */
export interface ModuleCallbacks {
  callbackModule: string | URL;
  getInferenceRequests?: undefined;
  sendResponse?: undefined;
  pollStopSignals?: undefined;
  returnBatchManagerStats?: undefined;
}

/** Options of a GptManager besides its callbacks. */
export interface ManagerFields extends GivenFields<typeof MANAGER_OPTIONS>, Fields<typeof MANAGER_EVENTS> {
  optionalParams?: OptionalParams;
}

/** Options of a GptManager, with callbacks as functions or in a module. */
export type GptManagerOptions = (FunctionCallbacks | ModuleCallbacks) & ManagerFields;
