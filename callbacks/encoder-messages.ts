import type { EncoderHead } from '../models/encoder-config.js';
import type { ExecutorMemory } from './worker-messages.js';

/** One text, or a pair of texts, as the network takes it: special tokens included. */
export interface EncoderSequence {
  tokenIds: Int32Array;
  /** [length]; null: all 0. */
  tokenTypes: Int32Array | null;
}

/** What one batch takes. */
export interface EncoderBatchLimits {
  /** Tokens of all its sequences. */
  maxNumTokens: number;
  maxNumSequences: number;
  /** Tokens of one sequence; no more than maxNumTokens. */
  maxSeqLen: number;
}

/** What the host sends to an encoder's worker. Each message is followed by a ring of the doorbell. */
export type EncoderCommand =
  | { type: 'batch'; sequences: EncoderSequence[] }
  /** Ends once every batch before it has been answered. */
  | { type: 'shutdown' };

/** What the worker sends. Batches are answered in order. */
export interface EncoderAnswer {
  type: 'rows';
  /** [sequences x outputWidth]; those of sequences with an error are 0. */
  rows: Float32Array;
  /** The error of each sequence; null: none. */
  errors: (string | null)[];
  /** Milliseconds of the forward. */
  forwardMs: number;
}

/** The encoder as it runs, known once it is loaded. */
export interface EncoderInfo {
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
