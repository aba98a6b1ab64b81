import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import {
  PLAIN_DEVICE_CACHE_PERCENT,
  PLAIN_OPTIMAL_ADAPTER_SIZE,
} from '../../callbacks/options/peft-cache-options.js';
import { ENGINE_TABLE, type EngineLevel } from '../../callbacks/options/table.js';
import { DEFAULT_CHUNKING_POLICY } from '../../callbacks/options/words.js';
import type { MissingRanks } from '../../callbacks/ranks-options.js';
import type { LoadRequest } from '../../engine/executors/loaded-executor.js';
import type { InProcessHostOptions } from '../../host/in-process-host.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { FoundEngines } from './find-engines.js';
import { leadingRank } from './leading-rank.js';
import { loweredContext } from './lowered-context.js';
import type { ModelOptions } from './model-options.js';

/** Load request for the worker. */
export function loadRequest(options: ModelOptions, engines: FoundEngines): LoadRequest {
  const { enginePath, optionalParams = {}, modelType, maxBeamWidth } = hostOptions(engines, options);
  return { enginePath, params: optionalParams, modelType, maxBeamWidth };
}

/** Fields of GptManagerOptions at one level, made of the plain options that were given. */
function fieldsOf(level: EngineLevel, options: ModelOptions): Record<string, unknown> {
  const given: Readonly<Record<string, unknown>> = { ...options };
  const isInFlight = options.batchingScheme !== 'V1';
  const fields = ENGINE_TABLE.flatMap(({ level: of, field, option }) => {
    if (of !== level || option.name === null || (option.isInFlightOnly && !isInFlight)) return [];
    const value = given[option.name];
    const read = value === undefined ? undefined : option.toField(value);
    return read === undefined ? [] : [[field, read]];
  });
  return Object.fromEntries(fields);
}

/** Options of the host, made of the plain options that were given. */
export function hostOptions(
  { engine, draft }: FoundEngines,
  options: ModelOptions,
  memory?: AvailableMemory,
  onMissing: (missing: MissingRanks) => void = () => {},
): InProcessHostOptions {
  const { maxQueuedRequests, maxQueuedRequestsPerKey, fairQueueing, resumeRequests } = options;
  const optionalParams: OptionalParams = {
    ...fieldsOf('optionalParams', options),
    ...chunking(options),
    kvCacheConfig: fieldsOf('kvCache', options),
  };
  if (options.adapters !== undefined) {
    optionalParams.peftCacheManagerConfig = {
      deviceCachePercent: PLAIN_DEVICE_CACHE_PERCENT,
      optimalAdapterSize: PLAIN_OPTIMAL_ADAPTER_SIZE,
      ...fieldsOf('peftCache', options),
    };
  }
  if (memory !== undefined) optionalParams.availableMemory = memory;
  const contextTokens = loweredContext(options, engine);
  if (contextTokens !== null) optionalParams.maxSeqLen = contextTokens;
  if (draft !== null) optionalParams.draftEnginePath = draft.directory;
  const ranks = leadingRank(options);
  return {
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    ...fieldsOf('manager', options),
    enginePath: engine.directory,
    optionalParams,
    ...(ranks === undefined ? {} : { ranks: { ...ranks, onMissing } }),
    ...(maxQueuedRequests === undefined ? {} : { maxQueueSize: maxQueuedRequests }),
    ...(maxQueuedRequestsPerKey === undefined ? {} : { maxQueueSizePerKey: maxQueuedRequestsPerKey }),
    ...(fairQueueing === undefined ? {} : { fairQueueing }),
    ...(resumeRequests === undefined ? {} : { resumeRequests }),
  };
}

/** Options of chunked prefill, so that one long prompt does not keep all others waiting. */
function chunking(options: ModelOptions): Pick<OptionalParams, 'chunkingPolicy' | 'maxChunkMs'> {
  const { chunkedPrefill, batchingScheme, chunkingPolicy, maxChunkMs } = options;
  if (!chunkedPrefill || batchingScheme === 'V1') return {};
  return {
    chunkingPolicy: chunkingPolicy ?? DEFAULT_CHUNKING_POLICY,
    maxChunkMs: maxChunkMs ?? 'auto',
  };
}
