import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PartLeftAside, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { RecommendedSampling } from '../../models/checkpoints/recommended-sampling.js';
import type { ModelConfig } from '../../models/model-config.js';

/**
 * An engine directory:
 *
 *   engine.json            EngineManifest
 *   weights.bin            portable weights in the chosen precision, row-major, each tensor at a multiple of 64 bytes;
 *                          rows of quantised tensors are whole blocks of 32 or 256 (weight-blocks.ts)
 *                          (engine/executors/native/kernels/kernels.h)
 *   tokenizer.json  tokenizer_config.json  chat_template.jinja (where the model has one)
 *   tokenizer-tables.bin   vocabulary and merges of tokenizer.json in a form that is read faster (where it is a BPE)
 *   tower/                 of a model that sees, the network that does, with weights of its own (building/tower-engine.ts)
 *   packed-<isa>-v<n>.bin  weights packed for an executor and instruction set, made on first use, mapped afterwards
 *
 * In an engine of the cache matrices of a GGUF may stay in that file (source-tensors.ts): engine.json then says where, and weights.bin
 * has the other tensors alone.
 */
export interface EngineTensor {
  /** Name of its weight. A stack of matrices that are stored in several precisions lies in several tensors, in order. */
  name: string;
  dtype: TensorPrecision;
  /** The tensor's first row in its weight; absent: 0. */
  firstRow?: number;
  rows: number;
  columns: number;
  /** 0 where it lies in the model's file. */
  offset: number;
  byteLength: number;
  /**
   * CRC-32 of the tensor's bytes; absent in engines of versions that wrote none, and for tensors of the
   * model's file that have not been packed yet (source-checksums-file.ts).
   */
  checksum?: number;
  /** Where its rows lie in the model's file, in order; absent: the tensor lies in weights.bin. */
  pieces?: SourcePiece[];
}

/** Rows of a tensor in the model's file. What they become in the tensor's precision is what weights.bin would have. */
export interface SourcePiece {
  type: TensorType;
  /** Number of the part of a split file, from 0; absent: the first. */
  part?: number;
  offset: number;
  byteLength: number;
  rows: number;
  /** See TensorLocation; absent: the rows are in order. */
  interleavedHeads?: number;
}

export interface SourceFile {
  /** Where it was last. */
  path: string;
  /** Where else starts have had it: machines that share a cache may have it in places of their own. */
  otherPaths?: string[];
  byteLength: number;
  modifiedMs: number;
  /** The other parts of a split file, which lie next to the first. */
  otherParts?: SourcePart[];
}

export interface SourcePart {
  name: string;
  byteLength: number;
  modifiedMs: number;
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
  /** Settings of sampling that the model's makers recommend; absent in engines of versions that did not read them. */
  sampling?: RecommendedSampling;
  /** See Checkpoint; absent where there is nothing to say, and in engines of versions that did not. */
  leftAside?: PartLeftAside[];
  remarks?: string[];
  /** Length of weights.bin. */
  weightsByteLength: number;
  tensors: EngineTensor[];
  /** The model's file, if tensors lie in it, and its length and time of modification when the engine was made. */
  sourceFile?: SourceFile;
}

/** Bytes of all weights of an engine, wherever they lie. */
export function weightBytesOf({ weightsByteLength, tensors }: EngineManifest): number {
  return tensors.reduce(
    (sum, { byteLength, pieces }) => (pieces === undefined ? sum : sum + byteLength),
    weightsByteLength,
  );
}

/** The tensors of each weight, in order. */
export function tensorsByWeight<T extends EngineTensor>(tensors: readonly T[]): Map<string, T[]> {
  const byWeight = new Map<string, T[]>();
  for (const tensor of tensors) {
    const parts = byWeight.get(tensor.name);
    if (parts === undefined) byWeight.set(tensor.name, [tensor]);
    else parts.push(tensor);
  }
  return byWeight;
}

/** Version of engine.json and weights.bin; raised when older readers would misread them. */
export const ENGINE_FORMAT_VERSION = 2;
/** The same of an engine whose matrices lie in the model's file, which older readers do not know. */
const SOURCE_FORMAT_VERSION = 3;
/** The same where the model's file is split: older readers would look for all rows in its first part. */
const PARTS_FORMAT_VERSION = 4;
/** Versions that are read, by the number of the model's files in which matrices lie: none, one, parts of one. */
export const FORMAT_VERSIONS: readonly number[] = [
  ENGINE_FORMAT_VERSION,
  SOURCE_FORMAT_VERSION,
  PARTS_FORMAT_VERSION,
];
/**
 * Version of the rules by which a checkpoint becomes an engine; raised when the same options give other weights, or the tokenizer other
 * tables. Engines of the cache are then built again, under another name; engines that a user has built stay what they are.
 */
export const BUILD_RULES_VERSION = 10;
/** Names of files with matrices in the layout of an instruction set. */
export const PACKED_FILE = /^packed-.*\.bin$/;

/** Numeric type of weights that an engine is built in: int8 and int4 in groups of 32 with their own scales. */
export type WeightPrecision = 'f32' | 'bf16' | 'int8' | 'int4';
/** GGML's types that are never built, only taken as a checkpoint has them. */
export type KeptPrecision = 'q4_k' | 'q5_k' | 'q6_k' | 'q5_0' | 'q5_1' | 'iq4_nl' | 'iq4_xs' | 'mxfp4';
/** Numeric type of one tensor of an engine. */
export type TensorPrecision = WeightPrecision | KeptPrecision;
/** Precision of an engine's weights; stored: each matrix has the numbers that the checkpoint stores. */
export type EnginePrecision = WeightPrecision | 'stored';
/** Numeric type of the embedding and of the output layer, which four bits would harm most. */
export type OutputPrecision = Exclude<EnginePrecision, 'int4'>;

/**
 * Replaces a file's text in one step of the file system, so that no reader sees half of it. False: it cannot
 * be written.
 */
export function replaceFile(path: string, text: string): boolean {
  const written = `${path}.${process.pid}-${Date.now()}.tmp`;
  try {
    writeFileSync(written, text);
    renameSync(written, path);
    return true;
  } catch {
    return false;
  }
}

/** Folder of the part of an engine that sees. */
export const towerFolder = (engineDirectory: string): string => join(engineDirectory, 'tower');
