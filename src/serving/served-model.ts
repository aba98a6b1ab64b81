import type { FormationListener } from '../../callbacks/formation.js';
import type { EncoderModel } from '../encoding/encoder-model.js';
import type { TextModel } from '../generation/text-model.js';
import type { ModelState } from './model-state.js';
import type { EncoderStatistics, GeneratorStatistics, ModelInfo } from './running-model.js';

/** What every model has that clients can ask for by a name, whatever it does. */
export interface ServedUnderName {
  /** The name that clients ask for. */
  id: string;
  /** Further names for it. */
  aliases: readonly string[];
  /** Unix seconds. */
  created: number;
  /** Longest input in tokens, with what is generated behind it. */
  maxSeqLen: number;
  /** How its engine fares. */
  state: ModelState;
  /** Requests that may wait; absent: it was not said. */
  maxQueueSize?: number;
  /** Bytes of the engine's process; null where it has none of its own, or none now. */
  processMemory?: () => number | null;
}

/** What is told of a KV cache. */
export type KvCacheFacts = Pick<ModelInfo, 'tokensPerBlock' | 'secondaryBlocks' | 'kvDtype'>;

/** What can be watched of a model's engine. */
export interface ModelWatch {
  /** Calls the listener after each iteration, until the function that it returns is called. */
  onStats(listener: () => void): () => void;
  /** The batch manager's statistics of the latest iteration, as a JSON object. */
  statsJson(): string;
  /** Calls the listener with what is in flight, until the function that it returns is called. */
  watchFormation(listener: FormationListener): () => void;
}

/** A model that generates text. */
export interface ServedGenerator extends TextModel, ServedUnderName {
  kind: 'generator';
  /** Stable as long as the same build of the same model answers. */
  fingerprint: string;
  statistics: GeneratorStatistics;
  /** As far as it is known. */
  kvCache?: Partial<KvCacheFacts>;
  /** What its engine does, for who watches. */
  watch: ModelWatch;
  /** Forgets every block of its KV cache that later prompts could find; resolves with their number. */
  resetCache(): Promise<number>;
  /** Most tokens of a chat answer whose request names no limit. */
  defaultMaxTokens: number;
  /** Most log-probs beside that of each token; default 20. */
  maxLogProbs?: number;
}

/** A model that turns text into vectors or scores. */
export interface ServedEncoder extends EncoderModel, ServedUnderName {
  kind: 'encoder';
  statistics: EncoderStatistics;
}

/** A model under its name; `kind` says which routes it answers. */
export type ServedModel = ServedGenerator | ServedEncoder;
