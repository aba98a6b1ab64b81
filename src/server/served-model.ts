import type { EncoderModel } from '../encoding/encoder-model.js';
import type { TextModel } from '../generation/text-model.js';
import type { ModelWatch } from './model-feed.js';

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
}

/** A model that generates text. */
export interface ServedGenerator extends TextModel, ServedUnderName {
  kind: 'generator';
  /** Stable as long as the same build of the same model answers. */
  fingerprint: string;
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
}

/** A model under its name; `kind` says which routes it answers. */
export type ServedModel = ServedGenerator | ServedEncoder;
