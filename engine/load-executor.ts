import { availableMemory } from '../kvcache/available-memory.js';
import { kvBytesPerBlock } from '../kvcache/kv-cache-size.js';
import { cpuQuota } from './cpu-quota.js';
import { openEngine } from './engine.js';
import { type EngineLimits, kvBlocks, resolveLimits } from './engine-limits.js';
import type { Executor, ExecutorOptions } from './executor.js';
import type { ModelType, OptionalParams } from './gpt-manager-options.js';
import { NativeExecutor } from './native/native-executor.js';
import { ropeDependsOnLength, ropeFrequencies } from './network/rope.js';
import { RopeTable } from './rope-table.js';

/** What a module given as `executorModule` exports under the name `loadExecutor`. */
export type LoadExecutor = (request: LoadRequest) => LoadedExecutor | Promise<LoadedExecutor>;

export interface LoadRequest {
  enginePath: string;
  params: OptionalParams;
  /** V1 needs room for padding: EngineLimits.padding says how much. */
  modelType: ModelType;
}

/** An executor ready to run, and what the loop needs to know beside it. */
export interface LoadedExecutor {
  executor: Executor;
  limits: EngineLimits;
  rope: RopeTable;
  /** Tokens that end a generation; the first is the usual end_id. */
  endTokenIds: number[];
  padTokenId: number | null;
}

/** Opens an engine directory, sizes the KV cache and starts the native executor. */
export const loadExecutor = ({ enginePath, params, modelType }: LoadRequest): LoadedExecutor => {
  const engine = openEngine(enginePath);
  const { config, precision, weightsByteLength } = engine.manifest;
  const limits = resolveLimits(params, engine.manifest, modelType);
  const kvDtype = params.kvDtype ?? (precision === 'f32' ? 'f32' : 'bf16');
  const memory = availableMemory();
  const numBlocks = kvBlocks(params, {
    limits,
    bytesPerBlock: kvBytesPerBlock(engine.plan.attention, limits.tokensPerBlock, kvDtype),
    // The weights are mapped and come in while running: their place is taken already.
    available: {
      bytes: Math.max(0, memory.bytes - weightsByteLength),
      from: `${memory.from}, less ${weightsByteLength} bytes of weights`,
    },
  });
  const { maxBatchSize, maxNumTokens } = limits.microBatch;
  const options: ExecutorOptions = {
    threads: params.threads ?? cpuQuota(),
    maxNumTokens,
    maxNumSequences: maxBatchSize + limits.padding.sequences,
    maxLogitRows: maxBatchSize,
    maxSeqLen: limits.maxSeqLen,
    numBlocks: numBlocks + limits.padding.blocks,
    tokensPerBlock: limits.tokensPerBlock,
    kvDtype,
    ...(params.instructionSet === undefined ? {} : { instructionSet: params.instructionSet }),
  };
  const executor = new NativeExecutor(
    {
      plan: engine.plan,
      weightsFile: engine.weightsFile,
      tensors: engine.manifest.tensors,
      packedFolder: engine.directory,
    },
    options,
  );
  const perLength = ropeDependsOnLength(config.rope)
    ? (length: number) => ropeFrequencies(config.rope, length)
    : null;
  return {
    executor,
    limits,
    rope: new RopeTable(ropeFrequencies(config.rope), perLength, limits.maxNumSequences),
    endTokenIds: config.eosTokenIds,
    padTokenId: config.padTokenId,
  };
};
