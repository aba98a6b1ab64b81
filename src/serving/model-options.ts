import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import type { FlagSpec } from '../../callbacks/options/option.js';
import type { MissingRanks } from '../../callbacks/ranks-options.js';
import type { BuildProgress } from '../../engine/building/builder.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import type { ChunkingPolicy } from '../../scheduler/tokens/types.js';
import type { PullProgress } from '../hub/pull.js';
import type { EngineValues, LoadingValues } from '../options/table.js';

/** Options by their plain names, all optional. */
type Loose<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> | undefined };

/**
 * Options for loading a model. Names, values and defaults are those of the flags of `skein serve`, except that Skein.load takes a KV
 * cache of 32,768 tokens unless kvCacheTokens, memoryFraction or a longer maxContextTokens is given. docs/options.md explains each.
 */
export interface ModelOptions extends Loose<LoadingValues>, Loose<EngineValues<FlagSpec | null>> {
  /**
   * The model: a Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of
   * the Hugging Face hub, which is downloaded unless it is in the cache. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and
   * HF_HOME are honoured.
   */
  model: string;
  /** Batching scheme; default InflightFusedBatching. With V1, chunkedPrefill and prefixCaching have no effect. */
  batchingScheme?: ModelType | undefined;
  /**
   * A smaller model with the same tokenizer, which drafts tokens; named like `model`. See
   * OptionalParams.draftEnginePath.
   */
  draftModel?: string | undefined;
  /**
   * LoRA adapters by which the model answers too, by name: a folder of PEFT, a GGUF file of llama.cpp, or ORG/NAME of the Hugging Face
   * hub. `{}`: none at first; later ones come with Skein.loadAdapter. Default: the model takes none.
   */
  adapters?: Readonly<Record<string, string>> | undefined;
  /** Policy by which prompts share an iteration; default SHORTEST_FIRST. Needs chunkedPrefill. */
  chunkingPolicy?: ChunkingPolicy | undefined;
  /**
   * Milliseconds that an iteration may spend on prompts which it does not end; default: what suits the executor. Needs
   * chunkedPrefill. See OptionalParams.maxChunkMs.
   */
  maxChunkMs?: number | undefined;
  /**
   * Bytes of memory to which cached blocks are swapped out; default 0. Needs prefixCaching; no effect with V1. See
   * KvCacheConfig.hostCacheSize.
   */
  kvCacheSwapBytes?: number | undefined;
  /** Called with progress while a model is downloaded from the hub. */
  onDownload?: ((progress: PullProgress) => void) | undefined;
  /** Called with progress while the engine is built, which happens once per model. */
  onProgress?: ((progress: BuildProgress) => void) | undefined;
  /**
   * Called with a sentence when the weights of a cached engine have changed on the disk; the engine is then
   * rebuilt. Default: a process warning, SKEIN_ENGINE_DAMAGED.
   */
  onDamaged?: ((message: string) => void) | undefined;
  /**
   * Called with the ranks that the model waits for at ranksAddress, each time that they change, and with none when all are there, at the start
   * and whenever one is lost.
   */
  onMissingRanks?: ((missing: MissingRanks) => void) | undefined;
  /** Called when the KV cache changes, from the engine's first iteration on. Needs prefixCaching. */
  cacheListener?: CacheListener | undefined;
  /** See InProcessHostOptions. */
  resumeRequests?: boolean | undefined;
  /** Signal whose abort ends the loading. */
  signal?: AbortSignal | undefined;
}

/** A receiver of the changes of a KV cache. */
interface CacheListener {
  /** The events of an iteration, in their order. */
  note(events: readonly KvCacheEvent[]): void;
  /** The engine has died, and its cache with it. */
  lose(): void;
}
