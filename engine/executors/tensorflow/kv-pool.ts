import type { UniformPlan } from '../cache-layers.js';
import { DType, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import { Variable } from './graph/variable.js';

/** Names of the pool's operations outside of steps, and of their feeds. */
export const POOL = {
  clear: 'pool/clear',
  from: 'pool/from',
  to: 'pool/to',
  copy: 'pool/copy',
  areFinite: 'pool/areFinite',
};

/**
 * Keys and values of all layers, a variable for each: [blocks * kvHeads, tokensPerBlock, headDim]. So one head's keys of a
 * block lie side by side, and slices gathered by block and head can be multiplied without a transposition.
 */
export class KvPool {
  readonly #keys: Variable[] = [];
  readonly #values: Variable[] = [];
  readonly #ops: Ops;
  readonly #shape: readonly [number, number, number];
  readonly #blocks: number;
  readonly dtype: DType;

  constructor(
    ops: Ops,
    attention: UniformPlan['attention'],
    { blocks, tokensPerBlock, dtype }: { blocks: number; tokensPerBlock: number; dtype: DType },
  ) {
    this.#ops = ops;
    this.dtype = dtype;
    this.#blocks = blocks;
    this.#shape = [blocks * attention.numKvHeads, tokensPerBlock, attention.headDim];
    for (let layer = 0; layer < attention.numLayers; layer++) {
      this.#keys.push(new Variable(ops.graph, `keys/${layer}`, { dtype, shape: this.#shape }));
      this.#values.push(new Variable(ops.graph, `values/${layer}`, { dtype, shape: this.#shape }));
    }
  }

  get bytesPerBlock(): number {
    const [slices, tokens, width] = this.#shape;
    const elements = (slices / this.#blocks) * tokens * width;
    return 2 * this.#keys.length * elements * (this.dtype === DType.float ? 4 : 2);
  }

  get #all(): Variable[] {
    return [...this.#keys, ...this.#values];
  }

  keys(layer: number): Variable {
    return this.#keys[layer]!;
  }

  values(layer: number): Variable {
    return this.#values[layer]!;
  }

  /** Fills everything with zeros. */
  clear(): Output[] {
    const { graph } = this.#ops;
    const zero = this.#ops.cast(this.#ops.float(0), DType.float, this.dtype);
    const attributes = { T: { type: this.dtype }, index_type: { type: DType.int32 } };
    const zeros = () => graph.node('Fill', { inputs: [this.#ops.ints(this.#shape), zero], attributes });
    return this.#all.map((variable) => variable.assign(zeros()));
  }

  /** Zeroes slices [n] of one variable. */
  zero(variable: Variable, slices: Output): Output {
    return variable.update(slices, this.#zeros(slices));
  }

  /** Copies slices of every layer, source[i] to target[i]: all are read before one is written. */
  copy(source: Output, target: Output): Output[] {
    return this.#all.map((variable) => variable.update(target, variable.gather(source)));
  }

  /** One number for each slice: 1 if it is finite in every layer. */
  areFinite(slices: Output): Output {
    const parts = this.#all.map((variable) => {
      const wide = this.#ops.cast(variable.gather(slices), this.dtype, DType.float);
      return this.#ops.sum(this.#ops.reshape(this.#ops.mul(wide, this.#ops.float(0)), [-1]), 0);
    });
    return parts.reduce((a, b) => this.#ops.add(a, b));
  }

  /** Zeros of the shape of these slices: slices of one block are all of the same size. */
  #zeros(slices: Output): Output {
    const [, tokens, width] = this.#shape;
    const { graph } = this.#ops;
    const count = graph.node('Shape', {
      inputs: [slices],
      attributes: { T: { type: DType.int32 }, out_type: { type: DType.int32 } },
    });
    const shape = this.#ops.concat([count, this.#ops.ints([tokens, width])], 0, DType.int32);
    const zero = this.#ops.cast(this.#ops.float(0), DType.float, this.dtype);
    const attributes = { T: { type: this.dtype }, index_type: { type: DType.int32 } };
    return graph.node('Fill', { inputs: [shape, zero], attributes });
  }
}
