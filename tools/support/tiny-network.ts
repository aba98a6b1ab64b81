import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineTensor, TensorPrecision } from '../../engine/directory/engine-directory.js';
import type { NativeEngine } from '../../engine/executors/native/native-executor.js';
import type { CacheShape } from '../../kvcache/cache-shape.js';
import { qkvWidth } from '../../network/cache-layers.js';
import type { ExpertRule } from '../../network/expert-rule.js';
import { type ExpertOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { Activation, NetworkPlan, TurnedNorms } from '../../network/plan.js';
import { bf16Bits, roundToBf16 } from './bf16.js';
import { randomStored, valuesOf } from './quantized.js';
import { Random } from './random.js';

export interface TinyShape {
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  /**
   * Values of the first layers in place of numHeads, numKvHeads and headDim; the layers after them have none
   * of their own.
   */
  ownHeads: readonly { numHeads?: number; numKvHeads?: number; headDim?: number }[];
  /** Layers at the end that keep nothing: their queries meet the keys and values of the first layer. */
  readingLayers: number;
  /**
   * True: values are normed without a weight, and each layer ends with a further input of each token, by the tokens' rows of another table.
   */
  layerInputs: boolean;
  activation: Activation;
  bias: boolean;
  /** mixed: stacks of q4_k and q6_k, of gate and up too, all else in q5_k. Superblocks need widths that 256 divides. */
  precision: TensorPrecision | 'mixed';
  seed: number;
  /**
   * True: it has features of other architectures than Llama's: embeddings that are scaled, normed heads,
   * norms after attention, a window, a cap and a RoPE of the first layer's own, capped logits.
   */
  varied: boolean;
  /**
   * True: heads have a LayerNorm of their own before they turn and an RMSNorm after, and the MLP has no gate, with relu squared in the
   * first layer and an xIELU in the others.
   */
  gateless: boolean;
  /**
   * Experts in place of each layer's MLP, each as wide as that; null: none. The scores are made by a matrix in f32. biased: their choice
   * has a bias, and their shares have factors. clamped: they have biases, and gate and up are clamped in place of the activation.
   */
  experts: ({ count: number; biased?: true; clamped?: true } & ExpertRule) | null;
  /** True: each head of queries has a further score without a value. */
  sunk: boolean;
  /** True: each layer begins with what keeps a state of the sequence, a gated convolution and a gated delta rule over it. */
  stateful: boolean;
  /** True: heads of values lie in tiles of the key heads. */
  tiled: boolean;
  /**
   * True: each layer begins with a selective scan of what a convolution gives, normed by groups and gated. alone: it has nothing else, so
   * that the network keeps nothing of a token.
   */
  scanned: boolean | 'alone';
  /**
   * True: its rows begin with the embedding next to a row that the caller brings, and its normed rows are
   * kept, as those of a head that guesses.
   */
  handsRows: boolean;
  /** True: RoPE turns by grids, and the first layer ends with what a prompt's own rows bring after the embedding. */
  sees: boolean;
  /** True: tokens of a picture attend to all of it in the first two layers, of which the first has a window that is shorter than pictures. */
  pictured: boolean;
}

/** The window of the first layer of a varied network. */
export const OWN_WINDOW = 40;
/** The window of the first layer of a pictured network. */
export const PICTURED_WINDOW = 6;

/** Numbers that Apertus might have. */
const XIELU = { alphaPositive: 0.83, alphaNegative: 1.21, beta: 0.5, epsilon: -1e-6 };

const DEFAULT_SHAPE: TinyShape = {
  vocabSize: 131,
  hiddenSize: 48,
  intermediateSize: 80,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 16,
  ownHeads: [],
  readingLayers: 0,
  layerInputs: false,
  activation: 'silu',
  bias: false,
  precision: 'f32',
  seed: 1,
  varied: false,
  gateless: false,
  experts: null,
  sunk: false,
  stateful: false,
  tiled: false,
  scanned: false,
  handsRows: false,
  sees: false,
  pictured: false,
};

/** Heads of the delta rule of a stateful network; their widths fill no vector. */
export const TINY_DELTA = { keyHeads: 2, valueHeads: 4, keyDim: 6, valueDim: 10 };
export const TINY_TAPS = 4;
/** A limit that some gates and ways up of a tiny network are beyond. */
const TINY_CLAMP = { alpha: 1.702, limit: 0.75 };
/** Heads of the scan of a scanned network; their widths fill no vector. */
export const TINY_SCAN = { heads: 6, headDim: 10, groups: 2, stateDim: 7 };

/** A random network of Llama's shape with its weights in a folder of its own. */
export interface TinyNetwork extends NativeEngine {
  shape: TinyShape;
  /** Weights as the executor sees them: already rounded to the precision. Those of blocks are computed at the first look. */
  readonly weights: Map<string, Float32Array>;
  inverseFrequencies: Float32Array;
  folder: string;
  remove(): void;
}

/** Tiny networks of a test file, removed together. */
export class TinyNetworks {
  readonly #made: TinyNetwork[] = [];

  make(changes: Partial<TinyShape> = {}): TinyNetwork {
    const network = makeTinyNetwork(changes);
    this.#made.push(network);
    return network;
  }

  remove(): void {
    for (const network of this.#made) network.remove();
  }
}

export function makeTinyNetwork(changes: Partial<TinyShape> = {}): TinyNetwork {
  const shape = { ...DEFAULT_SHAPE, ...changes };
  const plan = makePlan(shape);
  const folder = mkdtempSync(join(tmpdir(), 'skein-tiny-'));
  const weightsFile = join(folder, 'weights.bin');
  const { parts, tensors, bytes } = makeWeights(plan, shape);
  let weights: Map<string, Float32Array> | null = null;
  writeFileSync(weightsFile, bytes);
  const half = plan.attention.rotaryDim / 2;
  const inverseFrequencies = Float32Array.from({ length: half }, (_, i) => 10000 ** (-i / half));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return {
    shape,
    plan,
    get weights() {
      weights ??= valuesOfParts(plan, parts);
      return weights;
    },
    tensors,
    weightsFile,
    packedFolder: folder,
    inverseFrequencies,
    folder,
    remove,
  };
}

/** Hugging Face's names of the matrices, by which adapters find them. */
const SOURCES: Readonly<Record<string, string>> = {
  qkv: 'self_attn.qkv_proj.weight',
  o: 'self_attn.o_proj.weight',
  gateUp: 'mlp.gate_up_proj.weight',
  down: 'mlp.down_proj.weight',
};
const sourceOf = (name: string) =>
  name.replace(/^(layers\.\d+\.)(\w+)$/, (whole, layer, part) =>
    SOURCES[part] ? layer + SOURCES[part] : whole,
  );

function makePlan(shape: TinyShape): NetworkPlan {
  const { vocabSize, hiddenSize, intermediateSize, numLayers, bias } = shape;
  const { varied, gateless } = shape;
  const alone = shape.scanned === 'alone';
  const kept = numLayers - shape.readingLayers;
  const caches = Array.from({ length: kept }, (_, layer): CacheShape => {
    const { numKvHeads: kvHeads, headDim: width } = { ...shape, ...shape.ownHeads[layer] };
    return { kind: 'keysAndValues', kvHeads, keyDim: width, valueDim: width };
  });
  const rotaryDim = alone ? 0 : Math.min(...caches.map(({ keyDim }) => keyDim));
  const ropeTables = varied ? [Array.from({ length: rotaryDim / 2 }, (_, i) => 20 ** (-i / rotaryDim))] : [];
  const network = new NetworkBuilder({
    architecture: 'tiny',
    vocabSize,
    hiddenSize,
    attention: {
      numLayers: alone ? 0 : kept,
      ...headsOfLayers(shape, kept),
      rotaryDim,
      ropeTables,
      ...(shape.sees && { ropeAxes: Array.from({ length: rotaryDim / 2 }, (_, i) => i % 3) }),
    },
    caches: alone ? [] : caches,
  });
  const matrix = (name: string, rows: number, columns: number) => tinyMatrix(network, name, rows, columns);
  const vector = (name: string, columns: number) => network.vector(name, [{ name, columns }]);
  const biased = (name: string, columns: number) => (bias ? vector(name, columns) : null);
  const embedding = matrix('embedding', vocabSize, hiddenSize);
  const x = firstRows(network, embedding, shape);
  const inputs = shape.layerInputs ? layerInputs(network, x, shape, { matrix, vector }) : null;
  for (let layer = 0; layer < numLayers; layer++) {
    const name = (part: string) => `layers.${layer}.${part}`;
    if (inputs !== null) {
      const gate = network.linear(x, {
        weight: matrix(name('inputGate'), INPUT_WIDTH, hiddenSize),
        activation: 'geluTanh',
      });
      network.gate(gate, inputs, INPUT_WIDTH, { byFirst: layer * INPUT_WIDTH });
      network.addLinear(x, gate, { weight: matrix(name('inputDown'), hiddenSize, INPUT_WIDTH) });
    }
    if (shape.scanned) addScan(network, x, layer, { matrix, vector });
    if (shape.scanned === 'alone') continue;
    if (shape.stateful) addStates(network, x, layer, { matrix, vector, tiled: shape.tiled });
    addAttention(network, x, layer, caches, { shape, matrix, vector });
    const normedAgain = network.rmsNorm(x, vector(name('norm2'), hiddenSize), 1e-5);
    if (shape.experts !== null) {
      const scores = network.linear(normedAgain, {
        weight: matrix(name('router'), shape.experts.count, hiddenSize),
      });
      network.addExperts(x, normedAgain, scores, expertsOf(shape, shape.experts, name, { matrix, vector }));
      continue;
    }
    if (gateless) {
      const up = matrix(name('up'), intermediateSize, hiddenSize);
      const h = network.linear(normedAgain, { weight: up, activation: layer === 0 ? 'reluSquared' : 'none' });
      if (layer > 0) network.xielu(h, XIELU);
      network.addLinear(x, h, { weight: matrix(name('down'), hiddenSize, intermediateSize) });
      continue;
    }
    const gated = network.gatedLinear(normedAgain, {
      weight: matrix(name('gateUp'), 2 * intermediateSize, hiddenSize),
      bias: biased(name('gateUp.bias'), 2 * intermediateSize),
      activation: shape.activation,
    });
    network.addLinear(x, gated, { weight: matrix(name('down'), hiddenSize, intermediateSize) });
    if (shape.sees && layer === 0) network.addPromptRows(x, hiddenSize);
  }
  return network.build(logitsOf(network, x, embedding, shape));
}

/** Width of each layer's further input, which fills no vector. */
const INPUT_WIDTH = 10;

/** Inputs of all layers side by side, of the rows x and of the tokens. */
function layerInputs(
  network: NetworkBuilder,
  x: ValueRef,
  { numLayers, vocabSize }: TinyShape,
  { matrix, vector }: Makers,
): ValueRef {
  const width = numLayers * INPUT_WIDTH;
  const inputs = network.linear(x, { weight: matrix('inputs', width, x.width) });
  network.rmsNormColumns(inputs, 0, vector('inputs.norm', INPUT_WIDTH), 1e-5, numLayers);
  network.addEmbedding(inputs, matrix('inputs.table', vocabSize, width), 'tokenIds', 1.7);
  return inputs;
}

const tinyMatrix = (network: NetworkBuilder, name: string, rows: number, columns: number) =>
  network.matrix(name, [{ name: sourceOf(name), rows, columns }]);

/** The embedding, next to a row of the caller's where it brings one. */
function firstRows(
  network: NetworkBuilder,
  embedding: string,
  { varied, handsRows, hiddenSize }: TinyShape,
): ValueRef {
  const embedded = network.embedding(embedding, varied ? 1.7 : 1);
  if (!handsRows) return embedded;
  return network.linear(network.join(embedded, network.rowInput(hiddenSize)), {
    weight: tinyMatrix(network, 'join', hiddenSize, 2 * hiddenSize),
  });
}

function logitsOf(
  network: NetworkBuilder,
  x: ValueRef,
  embedding: string,
  { varied, handsRows, hiddenSize }: TinyShape,
): ValueRef {
  const weight = network.vector('norm', [{ name: 'norm', columns: hiddenSize }]);
  const last = handsRows ? network.rmsNorm(x, weight, 1e-5) : network.selectRows(x);
  if (handsRows) network.keepRows(last);
  const rows = handsRows ? network.selectRows(last) : network.rmsNorm(last, weight, 1e-5);
  const logits = network.linear(rows, { weight: embedding });
  if (varied) network.softCap(logits, 1.5);
  return logits;
}

/** The experts of a layer, whose parts `name` names. */
function expertsOf(
  { intermediateSize, hiddenSize, activation }: TinyShape,
  { count, biased, clamped, ...rule }: NonNullable<TinyShape['experts']>,
  name: (part: string) => string,
  {
    matrix,
    vector,
  }: {
    matrix: (name: string, rows: number, columns: number) => string;
    vector: (name: string, columns: number) => string;
  },
): ExpertOptions {
  const each = (make: (expert: string) => string) =>
    Array.from({ length: count }, (_, expert) => make(name(`experts.${expert}`)));
  return {
    gateUp: each((expert) => matrix(`${expert}.gateUp`, 2 * intermediateSize, hiddenSize)),
    down: each((expert) => matrix(`${expert}.down`, hiddenSize, intermediateSize)),
    ...rule,
    activation: clamped ? 'none' : activation,
    ...(biased && {
      choiceBias: vector(name('choice.bias'), count),
      shareScales: vector(name('shares'), count),
    }),
    ...(clamped && {
      clamped: TINY_CLAMP,
      biases: {
        gateUp: each((expert) => vector(`${expert}.gateUp.bias`, 2 * intermediateSize)),
        down: each((expert) => vector(`${expert}.down.bias`, hiddenSize)),
      },
    }),
  };
}

/** x += out(delta(conv(in(x))) * gate(x)) */
function addStates(
  network: NetworkBuilder,
  x: ValueRef,
  layer: number,
  {
    matrix,
    vector,
    tiled,
  }: {
    matrix: (name: string, rows: number, columns: number) => string;
    vector: (name: string, columns: number) => string;
    tiled: boolean;
  },
): void {
  const name = (part: string) => `layers.${layer}.${part}`;
  const { keyHeads, valueHeads, keyDim, valueDim } = TINY_DELTA;
  const columns = 2 * keyHeads * keyDim + valueHeads * valueDim;
  const values = valueHeads * valueDim;
  const both = network.linear(x, { weight: matrix(name('in'), 2 * columns, x.width) });
  network.gate(both, both, columns, { byFirst: columns, activation: 'sigmoid' });
  const conv = {
    weight: vector(name('conv'), TINY_TAPS * columns),
    bias: vector(name('conv.bias'), columns),
  };
  const qkv = network.shortConv(both, 0, { ...conv, taps: TINY_TAPS, activation: 'silu' });
  const gates = network.linear(x, { weight: matrix(name('rates'), 2 * valueHeads, x.width) });
  const delta = {
    decay: vector(name('decay.bias'), valueHeads),
    decayBias: vector(name('rate.bias'), valueHeads),
  };
  const y = network.gatedDelta(qkv, gates, {
    ...TINY_DELTA,
    ...delta,
    ...(tiled && { tiled }),
    epsilon: 1e-6,
  });
  network.gate(y, both, values, { byFirst: columns + 3, activation: 'silu' });
  network.addLinear(x, y, { weight: matrix(name('out'), x.width, values) });
}

/** x += out(norm(scan(conv(in(x))) * gate(x))), with a part of the projection scaled. */
function addScan(
  network: NetworkBuilder,
  x: ValueRef,
  layer: number,
  {
    matrix,
    vector,
  }: {
    matrix: (name: string, rows: number, columns: number) => string;
    vector: (name: string, columns: number) => string;
  },
): void {
  const name = (part: string) => `layers.${layer}.scan.${part}`;
  const { heads, headDim, groups, stateDim } = TINY_SCAN;
  const values = heads * headDim;
  const columns = values + 2 * groups * stateDim;
  const both = network.linear(x, { weight: matrix(name('in'), values + columns + heads, x.width) });
  network.scale(both, 0.7, values, columns);
  const input = network.shortConv(both, values, {
    weight: vector(name('conv.bias'), TINY_TAPS * columns),
    bias: null,
    taps: TINY_TAPS,
    activation: 'silu',
  });
  const y = network.selectiveScan(input, both, values + columns, {
    decay: vector(name('decay.bias'), heads),
    stepBias: vector(name('step.bias'), heads),
    skip: vector(name('skip'), heads),
    ...TINY_SCAN,
    leastStep: layer === 0 ? 0 : 0.5,
    mostStep: layer === 0 ? null : 0.9,
  });
  network.gate(y, both, values, { activation: 'silu' });
  for (let group = 0; group < groups; group++) {
    const width = values / groups;
    network.rmsNormColumns(y, group * width, vector(name(`norm.${group}`), width), 1e-5);
  }
  network.addLinear(x, y, { weight: matrix(name('out'), x.width, values) });
}

/** The heads of queries, of each layer where they differ. */
function headsOfLayers({ numHeads, ownHeads }: TinyShape, numLayers: number) {
  if (ownHeads.every((own) => own.numHeads === undefined)) return { numHeads };
  const layerHeads = Array.from({ length: numLayers }, (_, layer) => ownHeads[layer]?.numHeads ?? numHeads);
  return { numHeads: Math.max(...layerHeads), layerHeads };
}

/** Names weights: a matrix by its rows and columns, a vector by its columns. */
interface Makers {
  matrix: (name: string, rows: number, columns: number) => string;
  vector: (name: string, columns: number) => string;
}

/** x += the attention of a layer; those at the end read what the first one keeps. */
function addAttention(
  network: NetworkBuilder,
  x: ValueRef,
  layer: number,
  caches: readonly CacheShape[],
  { shape, matrix, vector }: Makers & { shape: TinyShape },
): void {
  const { varied, gateless, hiddenSize } = shape;
  const name = (part: string) => `layers.${layer}.${part}`;
  const biased = (part: string, columns: number) => (shape.bias ? vector(name(part), columns) : null);
  const reads = layer >= caches.length;
  const keeper = reads ? 0 : layer;
  const { kvHeads: numKvHeads, keyDim: headDim } = caches[keeper]!;
  const { numHeads } = { ...shape, ...shape.ownHeads[keeper] };
  const width = reads ? numHeads * headDim : qkvWidth(numHeads, caches[layer]!);
  const normed = network.rmsNorm(x, vector(name('norm1'), hiddenSize), 1e-5);
  const qkv = network.linear(normed, {
    weight: matrix(name('qkv'), width, hiddenSize),
    bias: biased('qkv.bias', width),
  });
  const norms = gateless
    ? addHeadNorms(network, qkv, vector, { ...caches[keeper]!, ...(reads && { kvHeads: 0 }) }, [
        layer,
        numHeads,
      ])
    : undefined;
  if (varied) {
    network.rmsNormHeads(qkv, 0, numHeads, vector(name('qNorm'), headDim), 1e-5);
    if (!reads) network.rmsNormHeads(qkv, numHeads, numKvHeads, vector(name('kNorm'), headDim), 1e-5);
  }
  if (shape.layerInputs && !reads)
    network.rmsNormPlain(qkv, (numHeads + numKvHeads) * headDim, numKvHeads, headDim, 1e-5);
  const own = varied && layer === 0 ? { window: OWN_WINDOW, softCap: 0.8, ropeTable: 0 } : {};
  const attended = network.attention(qkv, keeper, headDim ** -0.5, {
    ...own,
    ...(shape.pictured && layer < 2 && { withinPictures: true }),
    ...(shape.pictured && layer === 0 && { window: PICTURED_WINDOW }),
    ...(reads && { queriesOnly: true as const }),
    ...(norms && { norms }),
    ...(shape.sunk && { sinkLogits: vector(name('sinks'), numHeads) }),
  });
  const o = {
    weight: matrix(name('o'), hiddenSize, numHeads * headDim),
    bias: biased('o.bias', hiddenSize),
  };
  if (varied) {
    network.addRmsNorm(x, network.linear(attended, o), vector(name('norm3'), hiddenSize), 1e-5);
  } else network.addLinear(x, attended, o);
}

/** Norms heads of a layer, and returns the norms of heads that have turned. */
function addHeadNorms(
  network: NetworkBuilder,
  qkv: ValueRef,
  vector: (name: string, columns: number) => string,
  { kvHeads, keyDim }: CacheShape,
  [layer, numHeads]: [number, number],
): TurnedNorms {
  const own = (part: string, columns: number) => vector(`layers.${layer}.${part}`, columns);
  const [queries, keys] = [numHeads * keyDim, kvHeads * keyDim];
  network.layerNormHeads(qkv, 0, numHeads, own('ownQNorm', queries), 1e-5);
  if (kvHeads > 0) network.layerNormHeads(qkv, queries, kvHeads, own('ownKNorm', keys), 1e-5);
  return { query: own('turnedQNorm', keyDim), key: own('turnedKNorm', keyDim), epsilon: 1e-5 };
}

/** Rows of a weight, as they are stored, and what gives their values. */
interface Part {
  name: string;
  stored: Uint8Array;
  values: () => ArrayLike<number>;
}

function makeWeights(plan: NetworkPlan, shape: TinyShape) {
  const random = new Random(shape.seed);
  const parts: Part[] = [];
  const tensors: EngineTensor[] = [];
  let end = 0;
  for (const { name, kind, rows, columns } of plan.weights) {
    const spread = kind === 'vector' ? 0.2 : 1 / Math.sqrt(columns);
    const center = kind === 'vector' && !name.endsWith('bias') ? 1 : 0;
    let firstRow = 0;
    for (const part of kind === 'vector' ? [{ dtype: 'f32' as const, rows }] : partsOf(name, rows, shape)) {
      const made = makeMatrix(part.dtype, part.rows, columns, { random, spread, center });
      const offset = Math.ceil(end / 64) * 64;
      end = offset + made.stored.length;
      parts.push({ name, ...made });
      const place = firstRow === 0 ? {} : { firstRow };
      tensors.push({ name, ...part, ...place, columns, offset, byteLength: made.stored.length });
      firstRow += part.rows;
    }
  }
  const bytes = new Uint8Array(Math.ceil(end / 64) * 64);
  for (const [i, { offset }] of tensors.entries()) bytes.set(parts[i]!.stored, offset);
  return { parts, tensors, bytes };
}

function valuesOfParts(plan: NetworkPlan, parts: readonly Part[]): Map<string, Float32Array> {
  return new Map(
    plan.weights.map(({ name, rows, columns }) => {
      const values = new Float32Array(rows * columns);
      let end = 0;
      for (const part of parts.filter((one) => one.name === name)) {
        const own = part.values();
        values.set(own, end);
        end += own.length;
      }
      return [name, values];
    }),
  );
}

/** Rows of a matrix by their precision. */
function partsOf(name: string, rows: number, { precision }: TinyShape) {
  if (name.endsWith('router')) return [{ dtype: 'f32' as const, rows }];
  if (precision !== 'mixed') return [{ dtype: precision, rows }];
  if (!/(qkv|o|down|gateUp)$/.test(name) || /experts\.\d+\.down$/.test(name))
    return [{ dtype: 'q5_k' as const, rows }];
  const upper = name.endsWith('gateUp') ? rows / 2 : Math.ceil(rows / 3);
  return [
    { dtype: 'q4_k' as const, rows: rows - upper },
    { dtype: 'q6_k' as const, rows: upper },
  ];
}

/** Random values, rounded to the precision, as weights.bin stores them. */
function makeMatrix(
  dtype: TensorPrecision,
  rows: number,
  columns: number,
  { random, spread, center }: { random: Random; spread: number; center: number },
): Omit<Part, 'name'> {
  if (dtype !== 'f32' && dtype !== 'bf16') {
    const stored = randomStored(dtype, rows, columns, () => random.uniform(), 2 * spread);
    return { values: () => valuesOf(dtype, stored, rows, columns), stored };
  }
  const values = Float32Array.from({ length: rows * columns }, () => {
    const value = center + random.normal() * spread;
    return dtype === 'bf16' ? roundToBf16(value) : value;
  });
  const stored = dtype === 'f32' ? values : Uint16Array.from(values, bf16Bits);
  return {
    values: () => values,
    stored: new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength),
  };
}
