import type { ModelConfig } from '../../models/model-config.js';
import type { EnginePrecision, OutputPrecision, TensorPrecision } from '../executors/executor.js';

/**
 * An engine directory:
 *
 *   engine.json            EngineManifest
 *   weights.bin            portable weights in the chosen precision, row-major, each tensor at a multiple of 64 bytes;
 *                          rows of quantised tensors are whole blocks of 32 or 256 (weight-blocks.ts)
 *                          (engine/executors/native/kernels/kernels.h)
 *   tokenizer.json  tokenizer_config.json  chat_template.jinja (where the model has one)
 *   tokenizer-tables.json  vocabulary and merges of tokenizer.json in a form that is read faster (where it is a BPE)
 *   packed-<isa>-v<n>.bin  weights packed for an executor and instruction set, made on first use, mapped afterwards
 */
export interface EngineTensor {
  /** Name of its weight. A stack of matrices that are stored in several precisions lies in several tensors, in order. */
  name: string;
  dtype: TensorPrecision;
  /** The tensor's first row in its weight; absent: 0. */
  firstRow?: number;
  rows: number;
  columns: number;
  offset: number;
  byteLength: number;
  /** CRC-32 of the tensor's bytes; absent in engines of versions that wrote none. */
  checksum?: number;
}

export interface EngineManifest {
  formatVersion: number;
  skeinVersion: string;
  precision: EnginePrecision;
  /** Precision of the embedding and the output layer. */
  outputPrecision: OutputPrecision;
  config: ModelConfig;
  /** Length of the longest prompt and of the longest sequence that the engine takes; flags may lower them. */
  maxInputLen: number;
  maxSeqLen: number;
  source: { path: string; format: string; hash: string };
  weightsByteLength: number;
  tensors: EngineTensor[];
}

/** The tensors of each weight, in order. */
export function tensorsByWeight(tensors: readonly EngineTensor[]): Map<string, EngineTensor[]> {
  const byWeight = new Map<string, EngineTensor[]>();
  for (const tensor of tensors) {
    const parts = byWeight.get(tensor.name);
    if (parts === undefined) byWeight.set(tensor.name, [tensor]);
    else parts.push(tensor);
  }
  return byWeight;
}

/** Version of engine.json and weights.bin; raised when older readers would misread them. */
export const ENGINE_FORMAT_VERSION = 2;
/** Names of files with matrices in the layout of an instruction set. */
export const PACKED_FILE = /^packed-.*\.bin$/;
