import type { EncoderHead } from '../models/encoder-config.js';
import type { ExecutorMemory } from './worker-messages.js';

/** One text, or a pair of texts, as token ids for the network, special tokens included. */
export interface EncoderSequence {
  tokenIds: Int32Array;
  /** Token types, [length]; null: all 0. */
  tokenTypes: Int32Array | null;
  /** What is given of its tokens in place of its own row: a weight each, or vectors of all but the first. Absent: its row. */
  output?: TokenOutput;
}

/** What a model with layers over tokens gives of each. */
export type TokenOutput = 'weights' | 'vectors';

/** Whether a head gives what is asked for. */
export function givesTokens(head: EncoderHead, output: TokenOutput): boolean {
  if (head.kind !== 'embedding' || head.tokens === undefined) return false;
  return output === 'weights' ? head.tokens.weights : head.tokens.vectors !== null;
}

/** Number of values that are given for a sequence: its row, [length] weights, or [length - 1 x width] vectors. */
export function valuesOf(
  { tokenIds, output }: EncoderSequence,
  { head, outputWidth }: Pick<EncoderInfo, 'head' | 'outputWidth'>,
): number {
  if (output === undefined) return outputWidth;
  if (output === 'weights') return tokenIds.length;
  return (tokenIds.length - 1) * ((head.kind === 'embedding' ? head.tokens?.vectors : null) ?? 0);
}

/** Limits of one batch. */
export interface EncoderBatchLimits {
  /** Most tokens of all sequences of a batch together. */
  maxNumTokens: number;
  maxNumSequences: number;
  /** Most tokens of one sequence; at most maxNumTokens. */
  maxSeqLen: number;
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
  /** Number of values in the row of a sequence. */
  outputWidth: number;
  head: EncoderHead;
  tokenTypes: number;
  limits: EncoderBatchLimits;
  memory: ExecutorMemory;
  loadMs: number;
}
