import type { FormationListener } from '../../callbacks/formation.js';
import type { EncoderModel } from '../encoding/encoder-model.js';
import type { TextModel } from '../generation/text-model.js';
import type { AdapterSet } from './adapters/model-adapters.js';
import type { ModelFacts } from './model-facts.js';
import type { ModelState } from './model-state.js';
import type { EncoderStatistics, GeneratorStatistics, ModelInfo } from './running-model.js';

/**
 * Most log-probs of a token in addition to its own, as in OpenAI's API; more take time and memory on the way.
 */
export const DEFAULT_MAX_LOG_PROBS = 20;

/** Members of every model that clients can ask for by name, whatever it does. */
export interface ServedUnderName {
  /** Name that clients ask for. */
  id: string;
  /** Further names that clients may ask for. */
  aliases: readonly string[];
  /** Time of loading, in Unix seconds. */
  created: number;
  /** Most tokens of an input and the text generated after it. */
  maxSeqLen: number;
  /** State of the model's engine. */
  state: ModelState;
  /** Number of requests that may wait; absent: it is not known. */
  maxQueueSize?: number;
  /** What its files say; absent: it is not known. */
  facts?: () => ModelFacts;
  /** Bytes of its KV cache when it is full; absent: it has none, or that is not known. */
  cacheBytes?: number;
  /** Bytes of the engine's process; null where it has none of its own, or none at present. */
  processMemory?: () => number | null;
}

/** Properties of a KV cache that metrics report. */
export type KvCacheFacts = Pick<ModelInfo, 'tokensPerBlock' | 'secondaryBlocks' | 'kvDtype'>;

/** Events and statistics of a model's engine. */
export interface ModelWatch {
  /** Calls the listener after each iteration, until the returned function is called. */
  onStats(listener: () => void): () => void;
  /** The batch manager's statistics of the latest iteration, as a JSON object. */
  statsJson(): string;
  /** Calls the listener with the requests in flight, until the returned function is called. */
  watchFormation(listener: FormationListener): () => void;
}

/** A model that generates text. */
export interface ServedGenerator extends TextModel, ServedUnderName {
  kind: 'generator';
  /**
   * Fingerprint of the engine; where engines elsewhere answer, of the one that the model was learned from. See
   * EngineInfo.fingerprint.
   */
  fingerprint: string;
  /** Number of engines of each fingerprint that answer at present, with an adapter those that have it; absent: its own. */
  engines?: (adapter?: string) => ReadonlyMap<string, number>;
  statistics: GeneratorStatistics;
  /** Properties of the KV cache, as far as they are known. */
  kvCache?: Partial<KvCacheFacts>;
  /** Events of the model's engine, for watchers. */
  watch: ModelWatch;
  /** Forgets every block of the KV cache that later prompts could reuse; resolves with their number. */
  resetCache(): Promise<number>;
  /** Most requests that it computes at once; absent: not known. */
  maxActiveRequests?: number;
  /** Name of the file or folder that it was loaded from; absent: not known. */
  fileName?: string;
  /** Most tokens of a chat answer whose request names no limit. */
  defaultMaxTokens: number;
  /** Most log-probs in addition to that of each token; default 20. */
  maxLogProbs?: number;
  /** LoRA adapters by which it answers too; absent or null: it takes none. */
  adapters?: AdapterSet | null;
  /** Name of the model whose adapter this is; absent: it is a model of its own. */
  base?: string;
}

/** A model that turns text into vectors or scores. */
export interface ServedEncoder extends EncoderModel, ServedUnderName {
  kind: 'encoder';
  statistics: EncoderStatistics;
}

/** A model under its name; `kind` decides which routes it answers. */
export type ServedModel = ServedGenerator | ServedEncoder;

/** Number of engines of each fingerprint that answer as this model at present. */
export function enginesOf({ engines, fingerprint }: ServedGenerator): ReadonlyMap<string, number> {
  return engines?.() ?? new Map([[fingerprint, 1]]);
}
