import type { EncoderHead } from '../models/encoder-config.js';
import type { ExecutorMemory } from './worker-messages.js';

/** One text, or a pair of texts, as token ids for the network, special tokens included. */
export interface EncoderSequence {
  tokenIds: Int32Array;
  /** Token types, [length]; null: all 0. */
  tokenTypes: Int32Array | null;
}

/** Limits of one batch. */
export interface EncoderBatchLimits {
  /** Most tokens of all sequences of a batch together. */
  maxNumTokens: number;
  maxNumSequences: number;
  /** Most tokens of one sequence; at most maxNumTokens. */
  maxSeqLen: number;
}

/** Messages from the host to an encoder's worker. After each message the host rings the doorbell. */
export type EncoderCommand =
  | { type: 'batch'; sequences: EncoderSequence[] }
  /** Asks the worker to end once every batch before this message has been answered. */
  | { type: 'shutdown' };

/** Messages from an encoder's worker. Batches are answered in order. */
export interface EncoderAnswer {
  type: 'rows';
  /** Output rows, [sequences x outputWidth]; the row of a sequence with an error is all 0. */
  rows: Float32Array;
  /** Error of each sequence; null: no error. */
  errors: (string | null)[];
  /** Duration of the forward, in milliseconds. */
  forwardMs: number;
}

/** Properties of the running encoder, known once it is loaded. */
export interface EncoderInfo {
  /** See EngineInfo. */
  fingerprint: string;
  executor: string;
  /** See EngineInfo. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  vocabSize: number;
  outputWidth: number;
  head: EncoderHead;
  tokenTypes: number;
  limits: EncoderBatchLimits;
  memory: ExecutorMemory;
  loadMs: number;
}
