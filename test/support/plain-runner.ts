import { type CachedHeads, uniformPlan } from '../../engine/executors/cache-layers.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { slotOf, staysInCache } from '../../engine/executors/portable/cache-places.js';
import {
  addPromptRows,
  writeEmbeddingRows,
  writePromptRows,
} from '../../engine/executors/portable/embedding-rows.js';
import type { NetworkRunner, RunnableEngine } from '../../engine/executors/portable/network-runner.js';
import { type RopeAngles, writeRopeAngles } from '../../engine/executors/portable/rope-angles.js';
import { WeightReader } from '../../engine/executors/portable/weights/weight-reader.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import type { Activation, PlanOp } from '../../network/plan.js';
import { promptRowWidth } from '../../network/prompt-rows.js';
import { roundToBf16 } from '../../tools/support/bf16.js';
import { isAttendedTo, placesBefore } from './attended-places.js';
import { naiveShares } from './naive-experts.js';
import { activate, raised, xielu } from './naive-network.js';
import { type PlanParts, splitPlan } from './plan-parts.js';

type OpOf<K extends PlanOp['op']> = Extract<PlanOp, { op: K }>;
interface SeenKey {
  /** In its sequence. */
  place: number;
  key: Float32Array;
  value: Float32Array;
}
interface KvLayer {
  keys: Float32Array;
  values: Float32Array;
}

/**
 * A NetworkRunner in plain loops over a paged cache, sums in double precision: what PortableExecutor is tested with, and
 * what runners of tensor libraries are compared with. Every row is computed by itself.
 */
export class PlainRunner implements NetworkRunner {
  readonly name = 'wasm';
  readonly device = 'plain loops';
  /** Number of rows of each call of the head since the start. */
  readonly headRows: number[] = [];
  readonly #engine: RunnableEngine;
  readonly #options: ExecutorOptions;
  /** All layers keep the same. */
  readonly #heads: CachedHeads;
  readonly #window: AttentionWindow | null;
  readonly #parts: PlanParts;
  readonly #weights = new Map<string, Float32Array>();
  readonly #layers: KvLayer[];
  readonly #values: Float32Array[];
  /** By RoPE table; -1: the batch's frequencies, -2: the same towards sinks. */
  readonly #angles = new Map<number, RopeAngles>();
  /** Queries as they count towards sinks. */
  readonly #sinkQueries: Float32Array;

  constructor(engine: RunnableEngine, options: ExecutorOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#heads = uniformPlan(engine.plan, 'plain').attention;
    this.#window = resolveWindow(options);
    this.#parts = splitPlan(engine.plan);
    const reader = new WeightReader(engine);
    for (const { name } of engine.plan.weights) this.#weights.set(name, reader.read(name));
    reader.close();
    const { numLayers, numHeads } = engine.plan.attention;
    const { numKvHeads, headDim } = this.#heads;
    const slots = (options.numBlocks + (options.numSecondaryBlocks ?? 0)) * options.tokensPerBlock;
    const pool = () => new Float32Array(slots * numKvHeads * headDim);
    this.#layers = Array.from({ length: numLayers }, () => ({ keys: pool(), values: pool() }));
    this.#values = engine.plan.values.map(
      ({ rows, width }) =>
        new Float32Array(width * (rows === 'tokens' ? options.maxNumTokens : options.maxLogitRows)),
    );
    this.#sinkQueries = new Float32Array(options.maxNumTokens * numHeads * headDim);
  }

  forward(batch: PackedBatch): void {
    for (const { keys, values } of this.#layers) {
      const size = keys.length / this.#numBlocks;
      for (const block of batch.newBlocks.subarray(0, batch.numNewBlocks)) {
        keys.fill(0, block * size, (block + 1) * size);
        values.fill(0, block * size, (block + 1) * size);
      }
    }
    this.#prepareAngles(batch);
    for (const op of this.#parts.forward) this.#run(op, batch.numTokens, batch);
  }

  head(rows: Int32Array): void {
    this.headRows.push(rows.length);
    const { input, output } = this.#parts.selected;
    const { width } = this.#engine.plan.values[input]!;
    for (const [i, t] of rows.entries()) {
      this.#values[output]!.set(this.#values[input]!.subarray(t * width, (t + 1) * width), i * width);
    }
    for (const op of this.#parts.head) this.#run(op, rows.length, null);
  }

  logits(): Float32Array {
    const { plan } = this.#engine;
    return this.#values[plan.logits]!.subarray(0, this.headRows.at(-1)! * plan.outputWidth);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    for (const { keys, values } of this.#layers) {
      const size = keys.length / this.#numBlocks;
      for (const [i, from] of source.entries()) {
        for (const pool of [keys, values]) pool.copyWithin(target[i]! * size, from * size, (from + 1) * size);
      }
    }
  }

  areFinite(blocks: Int32Array): boolean {
    return this.#layers.every(({ keys, values }) => {
      const size = keys.length / this.#numBlocks;
      return [...blocks].every((block) =>
        [keys, values].every((pool) =>
          pool.subarray(block * size, (block + 1) * size).every(Number.isFinite),
        ),
      );
    });
  }

  memory() {
    const bytes = (arrays: Iterable<Float32Array>) =>
      [...arrays].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return {
      weightBytes: bytes(this.#weights.values()),
      kvCacheBytes: bytes(this.#layers.flatMap(({ keys, values }) => [keys, values])),
      workspaceBytes: bytes(this.#values),
    };
  }

  close(): void {
    this.#weights.clear();
  }

  get #numBlocks(): number {
    return this.#options.numBlocks + (this.#options.numSecondaryBlocks ?? 0);
  }

  #prepareAngles(batch: PackedBatch): void {
    const { rotaryDim, ropeTables = [], ropeAxes } = this.#engine.plan.attention;
    const write = (name: number, table?: number[], lastPosition?: number) => {
      const size = (batch.numTokens * rotaryDim) / 2;
      const angles = { cosine: new Float32Array(size), sine: new Float32Array(size) };
      writeRopeAngles(
        batch,
        { rotaryDim, table, axes: table === undefined ? ropeAxes : undefined, lastPosition },
        angles,
      );
      this.#angles.set(name, angles);
    };
    write(-1);
    for (const [index, table] of ropeTables.entries()) write(index, table);
    if (this.#window) write(-2, undefined, this.#window.maxAttentionWindow - 1);
  }

  /** Over `rows` rows; `batch` is null in the head. */
  #run(op: PlanOp, rows: number, batch: PackedBatch | null): void {
    switch (op.op) {
      case 'embedding':
        this.#embed(op, batch!);
        break;
      case 'addEmbedding':
        this.#addEmbedding(op, batch!);
        break;
      case 'addPromptRows': {
        const { plan } = this.#engine;
        const part = { vocabSize: plan.vocabSize, stride: promptRowWidth(plan), first: op.first };
        addPromptRows(batch!, { ...part, width: this.#width(op.value) }, this.#values[op.value]!);
        break;
      }
      case 'rmsNorm':
        this.#rmsNorm(op, rows);
        break;
      case 'rmsNormHeads':
        this.#rmsNormHeads(op, rows);
        break;
      case 'layerNorm':
        this.#layerNorm(op, rows);
        break;
      case 'linear':
        this.#linear(op, rows);
        break;
      case 'gatedLinear':
        this.#gatedLinear(op, rows);
        break;
      case 'experts':
        this.#mixture(op, rows);
        break;
      case 'gate':
        this.#each(op.value, rows, (row, r) => {
          const factors = this.#row(op.by, r).subarray(op.byFirst);
          for (let i = 0; i < op.columns; i++)
            row[op.first + i]! *= activate(factors[Math.floor(i / (op.per ?? 1))]!, op.activation);
        });
        break;
      case 'ropeAndCache':
        this.#rope(op, batch!);
        break;
      case 'attention':
        this.#attention(op, batch!);
        break;
      case 'layerNormHeads':
        this.#layerNormHeads(op, rows);
        break;
      case 'xielu':
        this.#each(op.value, rows, (row) => row.set(row.map((x) => xielu(x, op))));
        break;
      case 'softCap':
        this.#each(op.value, rows, (row) => row.set(row.map((x) => op.cap * Math.tanh(x / op.cap))));
        break;
      default:
        throw new Error(`The plain runner has no ${op.op}.`);
    }
  }

  #width(value: number): number {
    return this.#engine.plan.values[value]!.width;
  }

  #row(value: number, row: number): Float32Array {
    const width = this.#width(value);
    return this.#values[value]!.subarray(row * width, (row + 1) * width);
  }

  #each(value: number, rows: number, change: (row: Float32Array, index: number) => void): void {
    for (let row = 0; row < rows; row++) change(this.#row(value, row), row);
  }

  #embed({ output, weight, scale }: OpOf<'embedding'>, batch: PackedBatch): void {
    const shape = { vocabSize: this.#engine.plan.vocabSize, width: this.#width(output) };
    writeEmbeddingRows(batch, this.#weights.get(weight)!, { ...shape, scale }, this.#values[output]!);
    writePromptRows(batch, { ...shape, stride: promptRowWidth(this.#engine.plan) }, this.#values[output]!);
  }

  #addEmbedding({ output, weight, by, scale = 1 }: OpOf<'addEmbedding'>, batch: PackedBatch): void {
    const table = this.#weights.get(weight)!;
    const { vocabSize } = this.#engine.plan;
    const ids =
      by === 'positions' ? batch.positions : by === 'tokenTypes' ? batch.tokenTypes! : batch.tokenIds;
    this.#each(output, batch.numTokens, (row, r) => {
      const id = by === 'tokenIds' && ids[r]! >= vocabSize ? 0 : ids[r]!;
      for (let i = 0; i < row.length; i++) row[i]! += table[id * row.length + i]! * scale;
    });
  }

  #rmsNorm({ input, output, weight, epsilon, residual }: OpOf<'rmsNorm'>, rows: number): void {
    const scales = this.#weights.get(weight)!;
    this.#each(output, rows, (row, r) => {
      const before = residual === undefined ? null : this.#row(residual, r);
      const normed = normOf(this.#row(input, r), scales, epsilon);
      for (let i = 0; i < row.length; i++) row[i] = normed[i]! + (before?.[i] ?? 0);
    });
  }

  #rmsNormHeads(op: OpOf<'rmsNormHeads'>, rows: number): void {
    const { value, first, heads, epsilon } = op;
    const scales = op.weight === null ? new Float32Array(op.columns).fill(1) : this.#weights.get(op.weight)!;
    this.#each(value, rows, (row) => {
      for (let head = 0; head < heads; head++) {
        const at = first + head * scales.length;
        row.set(normOf(row.subarray(at, at + scales.length), scales, epsilon), at);
      }
    });
  }

  #layerNorm({ input, output, weight, bias, epsilon }: OpOf<'layerNorm'>, rows: number): void {
    const scales = this.#weights.get(weight)!;
    const biases = bias === null ? null : this.#weights.get(bias)!;
    this.#each(output, rows, (row, r) => {
      const normed = layerNormOf(this.#row(input, r), scales, epsilon);
      for (let i = 0; i < row.length; i++) row[i] = normed[i]! + (biases?.[i] ?? 0);
    });
  }

  #layerNormHeads({ value, first, heads, weight, epsilon }: OpOf<'layerNormHeads'>, rows: number): void {
    const scales = this.#weights.get(weight)!;
    const width = scales.length / heads;
    this.#each(value, rows, (row) => {
      for (let at = 0; at < scales.length; at += width) {
        const own = row.subarray(first + at, first + at + width);
        own.set(layerNormOf(own, scales.subarray(at, at + width), epsilon));
      }
    });
  }

  #linear({ input, output, weight, bias, activation, residual }: OpOf<'linear'>, rows: number): void {
    this.#each(output, rows, (row, r) => {
      const product = this.#product(this.#row(input, r), weight, bias);
      const before = residual === null ? null : this.#row(residual, r);
      for (let i = 0; i < row.length; i++) row[i] = activate(product[i]!, activation) + (before?.[i] ?? 0);
    });
  }

  #gatedLinear({ input, output, weight, bias, activation }: OpOf<'gatedLinear'>, rows: number): void {
    this.#each(output, rows, (row, r) => row.set(this.#gated(this.#row(input, r), weight, bias, activation)));
  }

  #mixture({ input, scores, output, residual, ...op }: OpOf<'experts'>, rows: number): void {
    const bias = op.choiceBias === undefined ? null : this.#weights.get(op.choiceBias)!;
    const scales = op.shareScales === undefined ? null : this.#weights.get(op.shareScales)!;
    this.#each(output, rows, (row, r) => {
      const sum = new Float64Array(row.length);
      for (const { expert, share } of naiveShares(this.#row(scores, r), op, bias)) {
        const both = this.#product(
          this.#row(input, r),
          op.gateUp[expert]!,
          op.biases?.gateUp[expert] ?? null,
        );
        const inner = Float32Array.from(raised(both, op));
        const down = this.#product(inner, op.down[expert]!, op.biases?.down[expert] ?? null);
        for (let i = 0; i < sum.length; i++) sum[i]! += share * (scales?.[expert] ?? 1) * down[i]!;
      }
      const before = residual === null ? null : this.#row(residual, r);
      for (let i = 0; i < row.length; i++) row[i] = sum[i]! + (before?.[i] ?? 0);
    });
  }

  #gated(x: Float32Array, weight: string, bias: string | null, activation: Activation): Float32Array {
    const product = this.#product(x, weight, bias);
    const width = product.length / 2;
    return Float32Array.from(
      { length: width },
      (_, i) => activate(product[i]!, activation) * product[width + i]!,
    );
  }

  #product(x: Float32Array, weight: string, bias: string | null): Float64Array {
    const matrix = this.#weights.get(weight)!;
    const biases = bias === null ? null : this.#weights.get(bias)!;
    const y = new Float64Array(matrix.length / x.length);
    for (let n = 0; n < y.length; n++) {
      let sum = biases?.[n] ?? 0;
      for (let k = 0; k < x.length; k++) sum += x[k]! * matrix[n * x.length + k]!;
      y[n] = sum;
    }
    return y;
  }

  #rope({ qkv, table = -1, norms }: OpOf<'ropeAndCache'>, batch: PackedBatch): void {
    const { numHeads, rotaryDim } = this.#engine.plan.attention;
    const { numKvHeads, headDim } = this.#heads;
    const half = rotaryDim / 2;
    const rotate = (x: Float32Array, heads: number, { cosine, sine }: RopeAngles, t: number) => {
      for (let head = 0; head < heads; head++) {
        for (let i = 0; i < half; i++) {
          const [low, high] = [head * headDim + i, head * headDim + i + half];
          const [a, b] = [x[low]!, x[high]!];
          const [c, s] = [cosine[t * half + i]!, sine[t * half + i]!];
          x[low] = a * c - b * s;
          x[high] = b * c + a * s;
        }
      }
    };
    const norm = (x: Float32Array, heads: number, weight: string | undefined) => {
      if (weight === undefined) return;
      for (let at = 0; at < heads * headDim; at += headDim) {
        const own = x.subarray(at, at + headDim);
        own.set(normOf(own, this.#weights.get(weight)!, norms!.epsilon));
      }
    };
    this.#each(qkv, batch.numTokens, (row, t) => {
      const ofSinks = this.#angles.get(-2);
      if (ofSinks !== undefined) {
        const queries = row.slice(0, numHeads * headDim);
        rotate(queries, numHeads, ofSinks, t);
        norm(queries, numHeads, norms?.query);
        this.#sinkQueries.set(queries, t * queries.length);
      }
      rotate(row, numHeads + numKvHeads, this.#angles.get(table)!, t);
      norm(row, numHeads, norms?.query);
      norm(row.subarray(numHeads * headDim), numKvHeads, norms?.key);
    });
  }

  /** The step's own keys and values go into the cache last: some of them take the places of keys that are read here. */
  #attention(op: OpOf<'attention'>, batch: PackedBatch): void {
    for (let sequence = 0; sequence < batch.numSequences; sequence++) {
      const seen = this.#keysOf(op, batch, sequence);
      const begin = batch.queryStart[sequence]!;
      const end = batch.queryStart[sequence + 1]!;
      for (let t = begin; t < end; t++) this.#attend(op, t, batch.contextLength[sequence]! - (end - t), seen);
    }
    const shape = { tokensPerBlock: this.#options.tokensPerBlock, window: this.#window };
    for (let sequence = 0; sequence < batch.numSequences; sequence++) {
      const end = batch.queryStart[sequence + 1]!;
      const length = batch.contextLength[sequence]!;
      for (let t = batch.queryStart[sequence]!; t < end; t++) {
        if (staysInCache(length - (end - t), length, shape)) this.#store(op, t, batch.slots[t]!);
      }
    }
  }

  /** Places, keys and values that rows of a sequence attend to: what lay in the cache, then the step's own. */
  #keysOf(op: OpOf<'attention'>, batch: PackedBatch, sequence: number): SeenKey[] {
    const { keys, values } = this.#layers[op.layer]!;
    const { numKvHeads, headDim } = this.#heads;
    const width = numKvHeads * headDim;
    const shape = { tokensPerBlock: this.#options.tokensPerBlock, window: this.#window };
    const found: SeenKey[] = [];
    const { sinks, recent, end } = placesBefore(batch, sequence, this.#window, op.mask?.window);
    for (let place = 0; place < end; place++) {
      if (place >= sinks && place < recent) continue;
      const slot = slotOf(batch, sequence, place, shape);
      found.push({
        place,
        key: keys.subarray(slot * width, (slot + 1) * width),
        value: values.subarray(slot * width, (slot + 1) * width),
      });
    }
    for (let t = batch.queryStart[sequence]!; t < batch.queryStart[sequence + 1]!; t++) {
      const [key, value] = this.#own(op, t);
      found.push({ place: end + t - batch.queryStart[sequence]!, key, value });
    }
    return found;
  }

  /** Key and value of row t as the cache holds them. */
  #own({ qkv }: OpOf<'attention'>, t: number): [Float32Array, Float32Array] {
    const { numHeads } = this.#engine.plan.attention;
    const { numKvHeads, headDim } = this.#heads;
    const row = this.#row(qkv, t);
    const [k, v] = [numHeads * headDim, (numHeads + numKvHeads) * headDim];
    const [key, value] = [row.slice(k, v), row.slice(v)];
    if (this.#options.kvDtype === 'f32') return [key, value];
    return [key.map(roundToBf16), value.map(roundToBf16)];
  }

  #store(op: OpOf<'attention'>, t: number, slot: number): void {
    const { keys, values } = this.#layers[op.layer]!;
    const [key, value] = this.#own(op, t);
    keys.set(key, slot * key.length);
    values.set(value, slot * value.length);
  }

  #attend(op: OpOf<'attention'>, t: number, place: number, seen: readonly SeenKey[]): void {
    const { numHeads } = this.#engine.plan.attention;
    const { numKvHeads, headDim } = this.#heads;
    const window = this.#window;
    const output = this.#row(op.output, t);
    const query = this.#row(op.qkv, t);
    const ofSinks = this.#sinkQueries.subarray(t * numHeads * headDim, (t + 1) * numHeads * headDim);
    const own = seen.filter(
      (key) => key.place <= place && isAttendedTo(key.place, place, window, op.mask?.window),
    );
    for (let head = 0; head < numHeads; head++) {
      const kv = Math.floor((head * numKvHeads) / numHeads) * headDim;
      const scores = own.map(({ place: at, key }) => {
        const q = at < (window?.sinkTokenLength ?? 0) ? ofSinks : query;
        let dot = 0;
        for (let i = 0; i < headDim; i++) dot += q[head * headDim + i]! * key[kv + i]!;
        const score = dot * op.scale;
        return op.softCap === undefined ? score : op.softCap * Math.tanh(score / op.softCap);
      });
      const logit = op.sinkLogits === undefined ? -Infinity : this.#weights.get(op.sinkLogits)![head]!;
      const maximum = scores.reduce((a, b) => Math.max(a, b), logit);
      const weights = scores.map((score) => Math.exp(score - maximum));
      const sum = weights.reduce((a, b) => a + b, Math.exp(logit - maximum));
      for (let i = 0; i < headDim; i++) {
        let mean = 0;
        for (const [s, { value }] of own.entries()) mean += weights[s]! * value[kv + i]!;
        output[head * headDim + i] = mean / sum;
      }
    }
  }
}

function layerNormOf(x: Float32Array, scales: Float32Array, epsilon: number): Float64Array {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  return Float64Array.from(x, (value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * scales[i]!);
}

function normOf(x: Float32Array, scales: Float32Array, epsilon: number): Float64Array {
  let squares = 0;
  for (const value of x) squares += value * value;
  const inverse = 1 / Math.sqrt(squares / x.length + epsilon);
  return Float64Array.from(x, (value, i) => value * inverse * scales[i]!);
}
