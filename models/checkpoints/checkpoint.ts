import type { Name, NamedText } from '../../base/named-text.js';
import { SkeinError } from '../../base/skein-error.js';
import type { ModelConfig } from '../model-config.js';
import type { NamedTemplates } from '../tokenizer/named-templates.js';
import type { QuantizedSource } from './quantized/quantized-source.js';
import type { RecommendedNames, RecommendedSampling } from './recommended-sampling.js';

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
  | 'Q6_K'
  | 'IQ4_NL'
  | 'IQ4_XS'
  | 'MXFP4'
  | 'NVFP4'
  | 'IQ1_S'
  | 'IQ1_M'
  | 'IQ2_XXS'
  | 'IQ2_XS'
  | 'IQ2_S'
  | 'IQ3_XXS'
  | 'IQ3_S'
  | 'TQ1_0'
  | 'TQ2_0';

/** Location of a tensor's bytes, which only native code reads. */
export interface TensorLocation {
  /** Hugging Face's name of the tensor, whatever the container calls it. */
  name: string;
  type: TensorType;
  /** Dimensions, row-major, outermost first, as in PyTorch: a linear weight is [out, in]. */
  shape: number[];
  file: string;
  offset: number;
  byteLength: number;
  /**
   * Number of heads whose rows are interleaved. llama.cpp's converter interleaves the rows of q and k of each head for
   * its own order of RoPE; the conversion puts them back.
   */
  interleavedHeads?: number;
  /**
   * True where the file holds the matrix as [in, out], as for GPT-2's layers; the conversion turns it. `shape` is the
   * file's.
   */
  transposed?: boolean;
  /**
   * Number of matrices whose columns stand by turns, column c of matrix p at c * interleavedColumns + p; the conversion puts them side by
   * side, one matrix after the other. Not of quantised matrices.
   */
  interleavedColumns?: number;
  /** Number added to each element: Gemma's norms store the difference of their weights from 1. Absent: 0. */
  addend?: number;
  /**
   * Tensors of one type and shape whose numbers follow by turns: first `run` of this one, then as many of each other, and again. `shape` is
   * that of all together, and `byteLength` that of this one.
   */
  byTurns?: { run: number; others: readonly Pick<TensorLocation, 'file' | 'offset'>[] };
  /** Where the other numbers of a quantised matrix lie, which is read as blocks of `type`; `byteLength` is that of its codes. */
  quantized?: QuantizedSource;
}

export interface TokenizerFiles {
  /** Contents of tokenizer.json, read or made from GGUF metadata. */
  tokenizerJson: unknown;
  /** Contents of tokenizer_config.json, or the part of them that GGUF metadata has. */
  tokenizerConfig: Record<string, unknown>;
  /** Jinja source of the chat template; null where the model has none. */
  chatTemplate: string | null;
  /** Chat templates of other names, such as tool_use. Absent: there are none. */
  namedTemplates?: NamedTemplates;
}

/** A part of a model that is left aside: the beginning of its tensors' names, and their number. */
export interface PartLeftAside {
  part: string;
  tensors: number;
}

/** A published model: opened and checked, with no weights read yet. */
export interface Checkpoint {
  /** Path that the user gave. */
  path: string;
  format: 'safetensors' | 'gguf';
  config: ModelConfig;
  tensors: Map<string, TensorLocation>;
  /** Parts of the model that its files have and nothing here computes, such as a vision tower. */
  leftAside: PartLeftAside[];
  /** Sentences on what is computed otherwise than the files' names say, for the log of a start. */
  remarks: string[];
  tokenizer: TokenizerFiles;
  /** See ModelFiles. */
  mmproj: readonly string[];
  /** What its makers recommend of these settings. */
  recommended(names: RecommendedNames): RecommendedSampling;
  /** Hash that changes with the checkpoint: of names, sizes, modification times and header bytes. */
  sourceHash: string;
}

/**
 * An error for a user's model with a fault. The message names file, tensor and expectation, on one line: control characters in what it quotes of
 * the file are escaped.
 */
export class CheckpointError extends SkeinError {
  override name = 'CheckpointError';
  override readonly code = 'SKEIN_CHECKPOINT';

  constructor(text: NamedText, options?: ErrorOptions) {
    super(typeof text === 'string' ? inOneLine(text) : text.map(partInOneLine), options);
  }
}

/** Names of options and fields are this project's own. */
function partInOneLine(part: string | Name): string | Name {
  return typeof part === 'string' ? inOneLine(part) : part;
}

function inOneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, escaped);
}

/** A control character as JSON writes it. */
function escaped(character: string): string {
  const text = JSON.stringify(character).slice(1, -1);
  return text === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}` : text;
}
