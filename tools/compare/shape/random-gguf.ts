import { closeSync, fsyncSync, mkdirSync, openSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { bf16Bits } from '../../support/bf16.js';
import { GgufWriter, TENSOR_TYPE_IDS, type TypedValue } from '../../support/gguf-writer.js';
import { toHalf } from '../../support/quantized.js';
import { Random } from '../../support/random.js';
import { madeUpVocabulary } from './made-up-vocabulary.js';
import {
  ATTENDING_INTERVAL,
  attendsToAll,
  DELTA_TAPS,
  type FileType,
  type ModelShape,
  type PlannedTensor,
  plannedTensors,
  type StoredType,
  weightBytes,
} from './model-shapes.js';
import { PICTURE_TOKENS, plannedTowerTensors, type TowerType, towerMetadata } from './tower-shape.js';

/** Bytes of random blocks that all matrices of a type are cut from, about. */
const POOL_BYTES = 4 << 20;
const ALIGNMENT = 32;
/** llama.cpp's number of the mixture, for its log. */
const FILE_TYPE_IDS: Readonly<Record<FileType, number>> = {
  Q4_0: 2,
  Q8_0: 7,
  Q4_K_M: 15,
  IQ3_S: 26,
  IQ4_XS: 30,
  BF16: 32,
};

/**
 * Blocks of the types: bytes, where their scales lie in half precision, and the scale at which random quants have the spread 1.
 * The second scale of Q4_K is that of the minima, which put the middle at 0.
 */
const BLOCKS: Readonly<Record<StoredType, { bytes: number; scales: readonly [at: number, unit: number][] }>> =
  {
    F32: { bytes: 4, scales: [] },
    BF16: { bytes: 2, scales: [] },
    Q8_0: { bytes: 34, scales: [[0, 1 / 74]] },
    Q4_0: { bytes: 18, scales: [[0, 1 / 4.6]] },
    Q5_0: { bytes: 22, scales: [[0, 1 / 9.2]] },
    Q4_K: {
      bytes: 144,
      scales: [
        [0, 1 / 300],
        [2, 7.5 / 300],
      ],
    },
    Q6_K: { bytes: 210, scales: [[208, 1 / 1370]] },
    IQ4_XS: { bytes: 136, scales: [[0, 1 / 1200]] },
    IQ3_S: { bytes: 110, scales: [[0, 1 / 120]] },
    // Its scale is an exponent: see #scale.
    MXFP4: { bytes: 17, scales: [] },
  };

/**
 * Writes a GGUF of a shape whose matrices are random, of a spread at which activations neither grow nor vanish; norms are 1. What it
 * says is nothing, what it costs is real. The same file each time. Its bytes are on the disk when this returns.
 *
 * @returns its bytes. @throws where the disk has no room for it.
 */
export function writeRandomGguf(file: string, shape: ModelShape, fileType: FileType): number {
  return writeTensors(file, shape.name, plannedTensors(shape, fileType), metadataOf(shape, fileType));
}

/** Writes the GGUF of what a shape sees with; see writeRandomGguf. */
export function writeRandomMmproj(
  file: string,
  { name, tower, hiddenSize }: ModelShape,
  type: TowerType,
): number {
  if (tower === undefined) throw new Error(`${name} sees nothing: it has no tower.`);
  const tensors = plannedTowerTensors(tower, hiddenSize, type);
  return writeTensors(file, name, tensors, towerMetadata(tower, hiddenSize));
}

function writeTensors(
  file: string,
  name: string,
  tensors: readonly PlannedTensor[],
  metadata: Record<string, TypedValue>,
): number {
  mkdirSync(dirname(file), { recursive: true });
  checkRoom(dirname(file), name, weightBytes(tensors));
  const pools = new Map<StoredType, RandomPool>();
  const descriptor = openSync(file, 'w');
  try {
    let position = writeAll(descriptor, headerOf(metadata, tensors));
    for (const tensor of tensors) {
      const pool = pools.get(tensor.type) ?? new RandomPool(tensor.type);
      pools.set(tensor.type, pool);
      for (const piece of pool.pieces(tensor)) position += writeAll(descriptor, piece);
      position += writeAll(descriptor, Buffer.alloc(-position & (ALIGNMENT - 1)));
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return statSync(file).size;
}

/** @throws where the disk has less room, and says how much. */
export function checkRoom(folder: string, what: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= bytes) return;
  const size = (count: number) => `${(count / 1e9).toFixed(1)} GB`;
  throw new Error(`${folder}: ${what} takes ${size(bytes)}, and the disk has ${size(bavail * bsize)} left.`);
}

function writeAll(descriptor: number, bytes: Uint8Array): number {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
  return bytes.length;
}

function headerOf(metadata: Record<string, TypedValue>, tensors: readonly PlannedTensor[]): Buffer {
  const writer = new GgufWriter().header(tensors.length, Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) writer.pair(key, value);
  let offset = 0;
  for (const { name, shape: sizes, type, byteLength } of tensors) {
    writer.tensorInfo(name, sizes, TENSOR_TYPE_IDS[type]!, offset);
    offset = Math.ceil((offset + byteLength) / ALIGNMENT) * ALIGNMENT;
  }
  return writer.align(ALIGNMENT).bytes();
}

function metadataOf(shape: ModelShape, fileType: FileType): Record<string, TypedValue> {
  const { architecture, experts, delta } = shape;
  const number = (value: number): TypedValue => ({ type: 'u32', value });
  const keys: Record<string, TypedValue> = {
    vocab_size: number(shape.vocabSize),
    context_length: number(32_768),
    embedding_length: number(shape.hiddenSize),
    block_count: number(shape.numLayers + (shape.draftHead ? 1 : 0)),
    feed_forward_length: number(shape.intermediateSize),
    'attention.head_count': number(shape.numHeads),
    'attention.head_count_kv': number(shape.numKvHeads),
    'attention.key_length': number(shape.headDim),
    'attention.value_length': number(shape.headDim),
    'rope.dimension_count': number(delta === undefined ? shape.headDim : shape.headDim / 4),
    'attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
    'rope.freq_base': { type: 'f32', value: shape.ropeTheta },
  };
  if (shape.tower !== undefined) {
    keys.n_deepstack_layers = number(shape.tower.levels.length);
    keys['rope.dimension_sections'] = { type: 'array', of: 'i32', value: [...SECTIONS, 0] };
  }
  if (shape.draftHead) keys.nextn_predict_layers = number(1);
  if (experts !== undefined) {
    keys.expert_count = number(experts.count);
    keys.expert_used_count = number(experts.used);
    keys.expert_feed_forward_length = number(shape.intermediateSize);
  }
  if (shape.wholeHeads !== undefined) Object.assign(keys, keysOfGemma4(shape, shape.wholeHeads));
  if (architecture === 'gpt-oss') {
    keys['attention.sliding_window'] = number(128);
    keys['rope.scaling.type'] = { type: 'string', value: 'yarn' };
    keys['rope.scaling.factor'] = { type: 'f32', value: 32 };
    keys['rope.scaling.original_context_length'] = number(4096);
  }
  if (delta !== undefined) {
    keys['ssm.conv_kernel'] = number(DELTA_TAPS);
    keys['ssm.state_size'] = number(delta.keyDim);
    keys['ssm.group_count'] = number(delta.keyHeads);
    keys['ssm.time_step_rank'] = number(delta.valueHeads);
    keys['ssm.inner_size'] = number(delta.valueHeads * delta.valueDim);
    keys.full_attention_interval = number(ATTENDING_INTERVAL);
    const pairs = shape.headDim / 8;
    // Time, rows and columns in turn, of a quarter of a head: 11, 11 and 10 of heads of 256.
    const sections = [0, 1, 2].map((axis) => Math.ceil((pairs - axis) / 3));
    keys['rope.dimension_sections'] = { type: 'array', of: 'i32', value: [...sections, 0] };
  }
  return {
    'general.architecture': { type: 'string', value: architecture },
    'general.name': { type: 'string', value: shape.name },
    'general.file_type': number(FILE_TYPE_IDS[fileType]),
    ...Object.fromEntries(Object.entries(keys).map(([key, value]) => [`${architecture}.${key}`, value])),
    ...madeUpVocabulary(shape.vocabSize, shape.tower === undefined ? [] : PICTURE_TOKENS),
  };
}

/** Pairs of a head of 128 that turn by time, rows and columns. */
const SECTIONS = [24, 20, 20];

/** Keys of layers that are not alike. */
function keysOfGemma4(
  shape: ModelShape,
  { numKvHeads, headDim }: NonNullable<ModelShape['wholeHeads']>,
): Record<string, TypedValue> {
  const number = (value: number): TypedValue => ({ type: 'u32', value });
  const layers = Array.from({ length: shape.numLayers }, (_, layer) => attendsToAll(shape, layer));
  return {
    feed_forward_length: number(shape.denseWidth ?? shape.intermediateSize),
    'attention.head_count_kv': {
      type: 'array',
      of: 'i32',
      value: layers.map((isWhole) => (isWhole ? numKvHeads : shape.numKvHeads)),
    },
    'attention.key_length': number(headDim),
    'attention.value_length': number(headDim),
    'attention.key_length_swa': number(shape.headDim),
    'attention.value_length_swa': number(shape.headDim),
    'rope.dimension_count': number(headDim),
    'rope.dimension_count_swa': number(shape.headDim),
    'rope.freq_base_swa': { type: 'f32', value: 10_000 },
    'attention.sliding_window': number(1024),
    'attention.sliding_window_pattern': {
      type: 'array',
      of: 'bool',
      value: layers.map((isWhole) => !isWhole),
    },
    'attention.shared_kv_layers': number(0),
    embedding_length_per_layer_input: number(0),
    final_logit_softcapping: { type: 'f32', value: 30 },
  };
}

/** Random blocks of a type. A matrix is pieces of them, each from another place on. */
class RandomPool {
  readonly #type: StoredType;
  readonly #bytes: Buffer;
  readonly #blocks: number;
  readonly #random = new Random(1);

  constructor(type: StoredType) {
    this.#type = type;
    this.#blocks = Math.ceil(POOL_BYTES / BLOCKS[type].bytes);
    this.#bytes = Buffer.alloc(this.#blocks * BLOCKS[type].bytes);
    if (isFloat(type)) return;
    for (let at = 0; at < this.#bytes.length; at++) this.#bytes[at] = this.#random.below(256);
  }

  /** The bytes of a tensor; a piece is good until the next one is asked for. */
  *pieces({ shape, byteLength, value = 1 }: PlannedTensor): Generator<Uint8Array> {
    this.#scale(shape.length === 1 ? null : shape.at(-1)! ** -0.5, value);
    const { bytes } = BLOCKS[this.#type];
    for (let left = byteLength; left > 0; ) {
      const from = left < this.#bytes.length ? 0 : this.#random.below(this.#blocks >> 1) * bytes;
      const piece = this.#bytes.subarray(from, from + Math.min(left, this.#bytes.length - from));
      left -= piece.length;
      yield piece;
    }
  }

  /** Gives the blocks a spread; null: all values are `alike`, of a vector. */
  #scale(spread: number | null, alike: number): void {
    const { bytes, scales } = BLOCKS[this.#type];
    for (let at = 0; at < this.#bytes.length; at += bytes) {
      for (const [place, unit] of scales) this.#bytes.writeUInt16LE(toHalf((spread ?? 1) * unit), at + place);
    }
    if (this.#type === 'MXFP4') {
      const exponent = 127 + Math.round(Math.log2((spread ?? 1) / MXFP4_SPREAD));
      for (let at = 0; at < this.#bytes.length; at += bytes) this.#bytes[at] = exponent;
    }
    if (!isFloat(this.#type)) return;
    const random = new Random(2);
    for (let at = 0; at < this.#bytes.length; at += bytes) {
      const value = spread === null ? alike : spread * random.normal();
      if (this.#type === 'F32') this.#bytes.writeFloatLE(value, at);
      else this.#bytes.writeUInt16LE(bf16Bits(value), at);
    }
  }
}

/** Of random codes of MXFP4, where the scale is 1. */
const MXFP4_SPREAD = 2.9;

const isFloat = (type: StoredType): boolean => type === 'F32' || type === 'BF16';
