import { SkeinError } from '../../base/skein-error.js';
import type { ModelConfig } from '../model-config.js';

/** Storage types that the native converter reads. Names as GGUF and safetensors write them. */
export type TensorType =
  | 'F32'
  | 'F16'
  | 'BF16'
  | 'Q8_0'
  | 'Q4_0'
  | 'Q4_1'
  | 'Q5_0'
  | 'Q5_1'
  | 'Q2_K'
  | 'Q3_K'
  | 'Q4_K'
  | 'Q5_K'
  | 'Q6_K';

/** Where a tensor's bytes lie. The bytes themselves are only ever touched by native code. */
export interface TensorLocation {
  /** Hugging Face's name, whatever the container calls it. */
  name: string;
  type: TensorType;
  /** Row-major, outermost first, as PyTorch has it: a linear weight is [out, in]. */
  shape: number[];
  file: string;
  offset: number;
  byteLength: number;
  /**
   * llama.cpp's converter interleaves the rows of q and k of each head for its own RoPE order; with this set, the
   * conversion puts them back: number of heads whose rows are interleaved.
   */
  interleavedHeads?: number;
  /** The file holds the matrix as [in, out], as GPT-2's layers do; the conversion turns it. `shape` is the file's. */
  transposed?: boolean;
  /** Added to each element: Gemma's norms store how far their weights are from 1. Absent: 0. */
  addend?: number;
}

export interface TokenizerFiles {
  /** Contents of tokenizer.json, read or made from GGUF metadata. */
  tokenizerJson: unknown;
  /** Contents of tokenizer_config.json, or what of it the GGUF metadata gives. */
  tokenizerConfig: Record<string, unknown>;
  /** Jinja source; null where the model has none. */
  chatTemplate: string | null;
}

/** A model as published: opened, checked, nothing of its weights read yet. */
export interface Checkpoint {
  /** The path the user gave. */
  path: string;
  format: 'safetensors' | 'gguf';
  config: ModelConfig;
  tensors: Map<string, TensorLocation>;
  tokenizer: TokenizerFiles;
  /** Changes when the checkpoint does: names, sizes, modification times and header bytes. */
  sourceHash: string;
}

/** The user's model is not what it should be. The message names file, tensor and expectation. */
export class CheckpointError extends SkeinError {
  override name = 'CheckpointError';
  override readonly code = 'SKEIN_CHECKPOINT';
}
