import { bytesOf } from '../../../models/checkpoints/raw-tensor.js';
import type { TowerShape } from './tower-shape.js';

/** Sizes of a model whose weights are random. */
export interface ModelShape {
  name: string;
  architecture: 'llama' | 'qwen3' | 'qwen3vl' | 'qwen3moe' | 'qwen35' | 'gpt-oss' | 'gemma4';
  vocabSize: number;
  hiddenSize: number;
  /** Width of the MLP; of each expert's where there are experts. */
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  ropeTheta: number;
  /** True where the embedding makes the logits too. */
  isTied: boolean;
  experts?: { count: number; used: number };
  /** Width of the MLP next to each layer's experts; absent: there is none. */
  denseWidth?: number;
  /** Heads of every sixth layer, which attends to all tokens and whose values are its keys; absent: layers are alike. */
  wholeHeads?: { numKvHeads: number; headDim: number };
  /** True of such a layer. */
  valuesAreKeys?: true;
  /** Layers with a delta rule in place of attention, all but every fourth; absent: all layers attend. */
  delta?: { keyHeads: number; valueHeads: number; keyDim: number; valueDim: number };
  /** True: with a head that guesses tokens, a layer that attends after the others. */
  draftHead?: true;
  /** What it sees pictures with, in a file of its own; absent: nothing. */
  tower?: TowerShape;
}

/** Of four layers with a delta rule the last one attends. */
export const ATTENDING_INTERVAL = 4;
/** Inputs of the convolution in front of a delta rule. */
export const DELTA_TAPS = 4;
const attends = ({ delta }: ModelShape, layer: number) =>
  delta === undefined || (layer + 1) % ATTENDING_INTERVAL === 0;

const LLAMA = { architecture: 'llama', vocabSize: 128_256, numKvHeads: 8, ropeTheta: 500_000 } as const;
const QWEN35 = {
  architecture: 'qwen35',
  vocabSize: 248_320,
  headDim: 256,
  ropeTheta: 10_000_000,
  isTied: true,
} as const;
const QWEN = { vocabSize: 151_936, numHeads: 32, headDim: 128, ropeTheta: 1_000_000 } as const;

/**
 * Sizes of SmolLM2 135M, Llama 3.2 1B and 3B, Llama 3.1 8B, Qwen3 0.6B, 4B and 30B-A3B, Qwen3-VL 2B, of 16 of the 48 layers of the last with a small
 * vocabulary (6 GB as Q4_K_M), Qwen3.5 0.8B and 4B, and of 6 of the 24 layers of gpt-oss-20b, whose experts are in MXFP4 in a file of any type,
 * and of the 30 of Gemma 4 26B-A4B.
 */
export const MODEL_SHAPES: readonly ModelShape[] = [
  {
    name: 'llama-135m',
    architecture: 'llama',
    vocabSize: 49_152,
    hiddenSize: 576,
    intermediateSize: 1536,
    numLayers: 30,
    numHeads: 9,
    numKvHeads: 3,
    headDim: 64,
    ropeTheta: 100_000,
    isTied: true,
  },
  {
    ...LLAMA,
    name: 'llama-1b',
    hiddenSize: 2048,
    intermediateSize: 8192,
    numLayers: 16,
    numHeads: 32,
    headDim: 64,
    isTied: true,
  },
  {
    ...LLAMA,
    name: 'llama-3b',
    hiddenSize: 3072,
    intermediateSize: 8192,
    numLayers: 28,
    numHeads: 24,
    headDim: 128,
    isTied: true,
  },
  {
    ...LLAMA,
    name: 'llama-8b',
    hiddenSize: 4096,
    intermediateSize: 14_336,
    numLayers: 32,
    numHeads: 32,
    headDim: 128,
    isTied: false,
  },
  {
    ...QWEN35,
    name: 'qwen3.5-0.8b',
    hiddenSize: 1024,
    intermediateSize: 3584,
    numLayers: 24,
    numHeads: 8,
    numKvHeads: 2,
    delta: { keyHeads: 16, valueHeads: 16, keyDim: 128, valueDim: 128 },
  },
  {
    ...QWEN35,
    name: 'qwen3.5-4b',
    hiddenSize: 2560,
    intermediateSize: 9216,
    numLayers: 32,
    numHeads: 16,
    numKvHeads: 4,
    delta: { keyHeads: 16, valueHeads: 32, keyDim: 128, valueDim: 128 },
  },
  {
    ...QWEN,
    name: 'qwen3-0.6b',
    architecture: 'qwen3',
    hiddenSize: 1024,
    intermediateSize: 3072,
    numLayers: 28,
    numHeads: 16,
    numKvHeads: 8,
    isTied: true,
  },
  {
    ...QWEN,
    name: 'qwen3-vl-2b',
    architecture: 'qwen3vl',
    hiddenSize: 2048,
    intermediateSize: 6144,
    numLayers: 28,
    numHeads: 16,
    numKvHeads: 8,
    isTied: true,
    tower: {
      hiddenSize: 1024,
      intermediateSize: 4096,
      numLayers: 24,
      numHeads: 16,
      patch: 16,
      image: 768,
      merge: 2,
      levels: [5, 11, 17],
    },
  },
  {
    ...QWEN,
    name: 'qwen3-4b',
    architecture: 'qwen3',
    hiddenSize: 2560,
    intermediateSize: 9728,
    numLayers: 36,
    numKvHeads: 8,
    isTied: true,
  },
  {
    ...QWEN,
    name: 'qwen3-30b-a3b',
    architecture: 'qwen3moe',
    hiddenSize: 2048,
    intermediateSize: 768,
    numLayers: 48,
    numKvHeads: 4,
    isTied: false,
    experts: { count: 128, used: 8 },
  },
  {
    ...QWEN,
    name: 'qwen3-moe-16-layers',
    architecture: 'qwen3moe',
    vocabSize: 49_152,
    hiddenSize: 2048,
    intermediateSize: 768,
    numLayers: 16,
    numKvHeads: 4,
    isTied: false,
    experts: { count: 128, used: 8 },
  },
  {
    name: 'gpt-oss-20b-6-layers',
    architecture: 'gpt-oss',
    vocabSize: 201_088,
    hiddenSize: 2880,
    intermediateSize: 2880,
    numLayers: 6,
    numHeads: 64,
    numKvHeads: 8,
    headDim: 64,
    ropeTheta: 150_000,
    isTied: false,
    experts: { count: 32, used: 4 },
  },
  {
    name: 'gemma-4-26b-a4b-6-layers',
    architecture: 'gemma4',
    vocabSize: 262_144,
    hiddenSize: 2816,
    intermediateSize: 704,
    numLayers: 6,
    numHeads: 16,
    numKvHeads: 8,
    headDim: 256,
    ropeTheta: 1_000_000,
    isTied: true,
    experts: { count: 128, used: 8 },
    denseWidth: 2112,
    wholeHeads: { numKvHeads: 2, headDim: 512 },
  },
];

/** Of six layers of Gemma 4 the last one attends to all tokens. */
export const attendsToAll = ({ wholeHeads }: ModelShape, layer: number): boolean =>
  wholeHeads !== undefined && (layer + 1) % 6 === 0;

/** @throws naming the shapes that there are. */
export function modelShapeOf(name: string): ModelShape {
  const found = MODEL_SHAPES.find((shape) => shape.name === name);
  if (found !== undefined) return found;
  const names = MODEL_SHAPES.map((shape) => shape.name).join(', ');
  throw new Error(`--shape: there is no '${name}'; there are ${names}.`);
}

/** Types of a whole file, as llama-quantize names them; Q4_K_M mixes Q4_K and Q6_K. */
export const FILE_TYPES = ['Q4_0', 'Q4_K_M', 'Q8_0', 'BF16', 'IQ4_XS', 'IQ3_S'] as const;
export type FileType = (typeof FILE_TYPES)[number];
export type StoredType =
  | 'F32'
  | 'BF16'
  | 'Q4_0'
  | 'Q5_0'
  | 'Q8_0'
  | 'Q4_K'
  | 'Q6_K'
  | 'IQ4_XS'
  | 'IQ3_S'
  | 'MXFP4';

/** Elements of a superblock. */
const SUPERBLOCK = 256;
/** What llama-quantize takes for a matrix whose rows are no whole superblocks. */
const WITHOUT_SUPERBLOCKS: Partial<Record<StoredType, StoredType>> = {
  Q4_K: 'Q5_0',
  Q6_K: 'Q8_0',
  IQ4_XS: 'Q5_0',
  IQ3_S: 'Q5_0',
};

/** @throws naming the types that there are. */
export function fileTypeOf(name: string): FileType {
  const found = FILE_TYPES.find((type) => type === name);
  if (found !== undefined) return found;
  throw new Error(`--type: there is no '${name}'; there are ${FILE_TYPES.join(', ')}.`);
}

export interface PlannedTensor {
  /** GGUF's name. */
  name: string;
  /** Outermost first. */
  shape: number[];
  type: StoredType;
  byteLength: number;
  /** What a vector's numbers are; absent: 1. */
  value?: number;
}

/** Tensors of a file, in its order, in the types that llama-quantize gives them. */
export function plannedTensors(shape: ModelShape, fileType: FileType): PlannedTensor[] {
  const { hiddenSize, vocabSize, numLayers, isTied } = shape;
  const plainType: StoredType = fileType === 'Q4_K_M' ? 'Q4_K' : fileType;
  const logits = fileType === 'Q8_0' || fileType === 'BF16' ? fileType : 'Q6_K';
  const tensors: PlannedTensor[] = [];
  const add = (name: string, wanted: StoredType, ...sizes: number[]) => {
    const type = sizes.at(-1)! % SUPERBLOCK === 0 ? wanted : (WITHOUT_SUPERBLOCKS[wanted] ?? wanted);
    tensors.push(plannedTensor(name, type, sizes));
  };
  add('token_embd.weight', isTied ? logits : plainType, vocabSize, hiddenSize);
  for (let layer = 0; layer < numLayers; layer++) {
    const better = fileType === 'Q4_K_M' && hasMoreBits(layer, numLayers) ? 'Q6_K' : plainType;
    const types: LayerTypes = { plain: plainType, better };
    const addHere = (name: string, type: StoredType, ...sizes: number[]) =>
      add(`blk.${layer}.${name}.weight`, type, ...sizes);
    if (attends(shape, layer)) addAttention(addHere, shapeOfLayer(shape, layer), types);
    else {
      addDelta(addHere, shape, types);
      const heads = shape.delta!.valueHeads;
      tensors.push(
        vectorOf(`blk.${layer}.ssm_a`, heads, DECAY_RATE),
        vectorOf(`blk.${layer}.ssm_dt.bias`, heads, 1),
      );
    }
    addMlp(addHere, shape, types);
    if (shape.architecture === 'gpt-oss') tensors.push(...besideMatrices(`blk.${layer}`, shape));
    if (shape.denseWidth !== undefined) tensors.push(...factorsOf(`blk.${layer}`, shape));
  }
  // Factors of RoPE: whole heads turn, which takes as long as a quarter of each.
  if (shape.wholeHeads) tensors.push(vectorOf('rope_freqs.weight', shape.wholeHeads.headDim / 2, 1));
  if (shape.draftHead) addHead(add, shape, { plain: plainType, better: plainType });
  add('output_norm.weight', 'F32', hiddenSize);
  if (!isTied) add('output.weight', logits, vocabSize, hiddenSize);
  return tensors;
}

/** The heads of a layer in place of those of most. */
const shapeOfLayer = (shape: ModelShape, layer: number): ModelShape =>
  attendsToAll(shape, layer) ? { ...shape, ...shape.wholeHeads, valuesAreKeys: true } : shape;

/** Layers whose values and down projections get 6 bits in a Q4_K_M: the first and last eighth, and every third between. */
function hasMoreBits(layer: number, numLayers: number): boolean {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
}

/** Rates of decay are below 0: with this one a state is halved in about 50 tokens. */
const DECAY_RATE = -0.01;

export const plannedTensor = (name: string, type: StoredType, shape: number[]): PlannedTensor => ({
  ...{ name, shape, type },
  byteLength: bytesOf('', name, type, shape),
});

function vectorOf(name: string, entries: number, value: number): PlannedTensor {
  return { ...plannedTensor(name, 'F32', [entries]), value };
}

/** Scores without values and biases of a layer of gpt-oss. */
function besideMatrices(
  layer: string,
  { hiddenSize, intermediateSize, numHeads, numKvHeads, headDim, experts }: ModelShape,
): PlannedTensor[] {
  const { count } = experts!;
  const vectors: [name: string, ...sizes: number[]][] = [
    ['attn_sinks.weight', numHeads],
    ['attn_q.bias', numHeads * headDim],
    ['attn_k.bias', numKvHeads * headDim],
    ['attn_v.bias', numKvHeads * headDim],
    ['attn_output.bias', hiddenSize],
    ['ffn_gate_inp.bias', count],
    ['ffn_gate_exps.bias', count, intermediateSize],
    ['ffn_up_exps.bias', count, intermediateSize],
    ['ffn_down_exps.bias', count, hiddenSize],
  ];
  return vectors.map(([own, ...shape]) => {
    const name = `${layer}.${own}`;
    return { name, shape, type: 'F32', byteLength: bytesOf('', name, 'F32', shape), value: 0 };
  });
}

type AddTensor = (name: string, type: StoredType, ...sizes: number[]) => void;
interface LayerTypes {
  plain: StoredType;
  better: StoredType;
}

function addAttention(
  add: AddTensor,
  { architecture, hiddenSize, numHeads, numKvHeads, headDim, delta, valuesAreKeys }: ModelShape,
  { plain, better }: LayerTypes,
): void {
  const [queries, keys] = [numHeads * headDim, numKvHeads * headDim];
  add('attn_norm', 'F32', hiddenSize);
  // With a gate for each query.
  add('attn_q', plain, delta === undefined ? queries : 2 * queries, hiddenSize);
  add('attn_k', plain, keys, hiddenSize);
  if (!valuesAreKeys) add('attn_v', better, keys, hiddenSize);
  add('attn_output', plain, hiddenSize, queries);
  if (architecture !== 'llama' && architecture !== 'gpt-oss') {
    add('attn_q_norm', 'F32', headDim);
    add('attn_k_norm', 'F32', headDim);
  }
}

/** The tensors that llama.cpp's converter makes of `mtp.*`. */
function addHead(add: AddTensor, shape: ModelShape, types: LayerTypes): void {
  const { hiddenSize, numLayers } = shape;
  const addHere: AddTensor = (name, type, ...sizes) => add(`blk.${numLayers}.${name}.weight`, type, ...sizes);
  addAttention(addHere, shape, types);
  addMlp(addHere, shape, types);
  addHere('nextn.eh_proj', types.plain, hiddenSize, 2 * hiddenSize);
  for (const norm of ['enorm', 'hnorm', 'shared_head_norm']) addHere(`nextn.${norm}`, 'F32', hiddenSize);
}

function addDelta(add: AddTensor, { hiddenSize, delta }: ModelShape, { plain }: LayerTypes): void {
  const { keyHeads, valueHeads, keyDim, valueDim } = delta!;
  const values = valueHeads * valueDim;
  const mixed = 2 * keyHeads * keyDim + values;
  add('attn_norm', 'F32', hiddenSize);
  add('attn_qkv', plain, mixed, hiddenSize);
  add('attn_gate', plain, values, hiddenSize);
  add('ssm_alpha', plain, valueHeads, hiddenSize);
  add('ssm_beta', plain, valueHeads, hiddenSize);
  add('ssm_conv1d', 'F32', mixed, DELTA_TAPS);
  add('ssm_norm', 'F32', valueDim);
  add('ssm_out', plain, hiddenSize, values);
}

function addMlp(add: AddTensor, shape: ModelShape, types: LayerTypes): void {
  const { architecture, hiddenSize, intermediateSize, experts, delta, denseWidth } = shape;
  const isGptOss = architecture === 'gpt-oss';
  const { plain, better }: LayerTypes = isGptOss ? { plain: 'MXFP4', better: 'MXFP4' } : types;
  add(delta === undefined && !isGptOss ? 'ffn_norm' : 'post_attention_norm', 'F32', hiddenSize);
  if (denseWidth !== undefined) addDense(add, shape, types);
  if (experts === undefined) {
    add('ffn_gate', plain, intermediateSize, hiddenSize);
    add('ffn_up', plain, intermediateSize, hiddenSize);
    add('ffn_down', better, hiddenSize, intermediateSize);
    return;
  }
  add('ffn_gate_inp', 'F32', experts.count, hiddenSize);
  add('ffn_gate_exps', plain, experts.count, intermediateSize, hiddenSize);
  add('ffn_up_exps', plain, experts.count, intermediateSize, hiddenSize);
  add('ffn_down_exps', better, experts.count, hiddenSize, intermediateSize);
}

/** What a layer of Gemma 4 has next to its experts, and its norms. */
function addDense(add: AddTensor, { hiddenSize, denseWidth = 0 }: ModelShape, types: LayerTypes): void {
  for (const norm of [
    'post_attention_norm',
    'post_ffw_norm',
    'post_ffw_norm_1',
    'pre_ffw_norm_2',
    'post_ffw_norm_2',
  ])
    add(norm, 'F32', hiddenSize);
  add('ffn_gate', types.plain, denseWidth, hiddenSize);
  add('ffn_up', types.plain, denseWidth, hiddenSize);
  add('ffn_down', types.better, hiddenSize, denseWidth);
}

/** Factors of a layer of Gemma 4: of the router's input, of the experts' shares and of its output. */
function factorsOf(layer: string, { hiddenSize, experts }: ModelShape): PlannedTensor[] {
  return [
    vectorOf(`${layer}.ffn_gate_inp.scale`, hiddenSize, 1),
    vectorOf(`${layer}.ffn_down_exps.scale`, experts!.count, 1),
    vectorOf(`${layer}.layer_output_scale.weight`, 1, 1),
  ];
}

/** Bytes of the tensors, without the header. */
export function weightBytes(tensors: readonly PlannedTensor[]): number {
  return tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
