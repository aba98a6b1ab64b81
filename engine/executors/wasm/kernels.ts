import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../base/package-info.js';
import type { Activation } from '../../../network/plan.js';
import { webAssembly } from './web-assembly.js';

/** Functions of engine/executors/wasm/kernels, which documents each. Pointers are byte offsets of the heap. */
export interface Kernels {
  attention(
    qkv: number,
    stride: number,
    sinkQueries: number,
    group: number,
    rows: number,
    first: number,
    start: number,
    length: number,
    recent: number,
    ahead: number,
    numSinks: number,
    scale: number,
    softCap: number,
    scratch: number,
    positions: number,
    output: number,
  ): void;
  attentionScratchBytes(positions: number): number;
  setCache(
    layer: number,
    tokensPerBlock: number,
    kvHeads: number,
    headDim: number,
    blocks: number,
    sinkBlocks: number,
    ringBlocks: number,
  ): void;
  setRelative(biases: number, queries: number, keys: number, columns: number, zero: number): void;
  setSinkLogits(logits: number): void;
  storeKv(
    layer: number,
    tokensPerBlock: number,
    kvHeads: number,
    headDim: number,
    kv: number,
    stride: number,
    rows: number,
    slots: number,
  ): void;
  finishRows(x: number, residual: number, activation: number, count: number, y: number): void;
  gateRows(x: number, rows: number, width: number, activation: number, y: number): void;
  clampRows(x: number, rows: number, width: number, alpha: number, limit: number, y: number): void;
  addShare(x: number, share: number, count: number, y: number): void;
  capRows(x: number, cap: number, count: number): void;
  xieluRows(
    x: number,
    alphaPositive: number,
    alphaNegative: number,
    beta: number,
    epsilon: number,
    count: number,
  ): void;
  /** Returns 1 if all values are finite, else 0. */
  allFinite(x: number, count: number): number;
  rmsNorm(
    x: number,
    weight: number,
    epsilon: number,
    residual: number,
    width: number,
    rows: number,
    y: number,
  ): void;
  normHeads(
    x: number,
    stride: number,
    heads: number,
    width: number,
    weight: number,
    epsilon: number,
    rows: number,
  ): void;
  layerNormHeads(
    x: number,
    stride: number,
    heads: number,
    width: number,
    weight: number,
    epsilon: number,
    rows: number,
  ): void;
  layerNorm(
    x: number,
    weight: number,
    bias: number,
    epsilon: number,
    width: number,
    rows: number,
    y: number,
  ): void;
  meanRows(x: number, rows: number, width: number, y: number): void;
  unitRows(x: number, width: number, rows: number, y: number): void;
  rope(
    x: number,
    stride: number,
    heads: number,
    headWidth: number,
    half: number,
    rows: number,
    cosines: number,
    sines: number,
  ): void;
  copyColumns(x: number, stride: number, width: number, rows: number, y: number): void;
  gateColumns(
    x: number,
    stride: number,
    by: number,
    byStride: number,
    columns: number,
    per: number,
    activation: number,
    rows: number,
  ): void;
  shortConv(
    x: number,
    stride: number,
    history: number,
    weight: number,
    bias: number,
    taps: number,
    columns: number,
    activation: number,
    rows: number,
    y: number,
  ): void;
  clampColumns(x: number, stride: number, columns: number, least: number, most: number, rows: number): void;
  scaleColumns(x: number, stride: number, columns: number, factor: number, rows: number): void;
  selectiveScan(
    x: number,
    b: number,
    c: number,
    stride: number,
    steps: number,
    stepStride: number,
    rate: number,
    stepBias: number,
    skip: number,
    leastStep: number,
    mostStep: number,
    headDim: number,
    stateDim: number,
    state: number,
    rows: number,
    y: number,
    yStride: number,
  ): void;
  gatedDelta(
    query: number,
    key: number,
    value: number,
    stride: number,
    factors: number,
    factorStride: number,
    keyDim: number,
    valueDim: number,
    epsilon: number,
    state: number,
    rows: number,
    y: number,
    yStride: number,
    scratch: number,
  ): void;
}

/** Numbers by which the kernels know activations. */
export const ACTIVATIONS: Record<Activation, number> = {
  none: 0,
  silu: 1,
  gelu: 2,
  geluTanh: 3,
  tanh: 4,
  relu: 5,
  reluSquared: 6,
  sigmoid: 7,
  quickGelu: 8,
};

/** The kernels as compiled by tools/build-wasm.mjs; tests in a checkout use them too. */
const FILE = 'dist/engine/executors/wasm/kernels.wasm';

/** Loads the kernels, computing in this memory (a WebAssembly.Memory). Throws if they have not been built. */
export function loadKernels(memory: object): Kernels {
  const file = join(packageRoot(), FILE);
  let bytes: Buffer<ArrayBuffer>;
  try {
    bytes = readFileSync(file);
  } catch {
    throw new Error(`The kernels of the wasm executor are not there (${file}); run "npm run build:ts".`);
  }
  const instance = new webAssembly.Instance(new webAssembly.Module(bytes), { env: { memory } });
  return instance.exports as unknown as Kernels;
}
