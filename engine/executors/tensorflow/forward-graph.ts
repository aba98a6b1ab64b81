import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { NetworkPlan, PlanOp } from '../../../network/plan.js';
import { promptRowWidth } from '../../../network/prompt-rows.js';
import type { UniformPlan } from '../cache-layers.js';
import { type AttentionFeeds, AttentionGraph } from './attention-graph.js';
import { blocksPerUnit, TILE_ROWS } from './attention-units.js';
import { mixture } from './experts-graph.js';
import { DType, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import type { Variable } from './graph/variable.js';
import type { KvPool } from './kv-pool.js';
import type { NetworkWeights } from './network-weights.js';
import { activate, gated, layerNorm, rmsNorm, softCap, unitRows, xielu } from './row-ops.js';
import type { RowRule } from './row-rule.js';

export interface NetworkParts {
  ops: Ops;
  plan: UniformPlan;
  weights: NetworkWeights;
  pool: KvPool;
  /** The value that heads take rows of [maxNumTokens + 1, width]. */
  hidden: Variable;
  tokensPerBlock: number;
  window: AttentionWindow | null;
  rule: RowRule;
}

/** True if a step without tiles may have more units of attention than rows. */
export const looksUpResults = ({ attentionProducts }: RowRule) => attentionProducts > 1;

/**
 * Index of the op at which a plan's ops part: those before work on rows of tokens, this one and those after
 * it on rows of logits.
 */
export function headStart({ ops, architecture }: NetworkPlan): number {
  const at = ops.findIndex(({ op }) => op === 'selectRows' || op === 'meanPool');
  if (at < 0) throw new Error(`The network ${architecture} has neither rows of logits nor a mean of rows.`);
  return at;
}

/** Index of the value that the head takes rows of. */
export function hiddenValue(plan: NetworkPlan): number {
  const op = plan.ops[headStart(plan)]!;
  return (op as Extract<PlanOp, { op: 'selectRows' | 'meanPool' }>).input;
}

/** A qkv value after its queries are rotated and its keys and values written. */
interface Turned {
  queries: Output;
  sinkQueries: Output | null;
  written: Output[];
  keys: Output;
  values: Output;
}

/**
 * The ops over rows of tokens as nodes under `scope`, like the names of their feeds (see step-feeds.ts). `done` is the node to
 * run. One graph has tiles, for chunks of context; the other has none.
 */
export class ForwardGraph {
  readonly #parts: NetworkParts;
  readonly #attention: AttentionGraph;
  readonly #values = new Map<number, Output>();
  readonly #turned = new Map<number, Turned>();
  readonly #kept: Output[] = [];
  /** Nodes that have read each cache since it was written. An encoder's layers write over one another's caches. */
  readonly #readers = new Map<Variable, readonly Output[]>();
  readonly #feed: (name: string, dtype: DType, shape: readonly number[]) => Output;

  private constructor(parts: NetworkParts, scope: string, withTiles: boolean) {
    this.#parts = parts;
    const made = new Map<string, Output>();
    this.#feed = (name, dtype, shape) => {
      const output = made.get(name) ?? parts.ops.graph.placeholder(`${scope}/${name}`, dtype, shape);
      made.set(name, output);
      return output;
    };
    const { plan, tokensPerBlock, window, rule } = parts;
    this.#attention = new AttentionGraph(parts.ops, parts.pool, this.#attentionFeeds(withTiles), {
      attention: plan.attention,
      window,
      tokensPerBlock,
      blocksPerUnit: blocksPerUnit(tokensPerBlock),
      rowMultiple: rule.attentionRows,
    });
  }

  static write(parts: NetworkParts, scope: string, withTiles: boolean): void {
    parts.ops.graph.within(scope, () => {
      const forward = new ForwardGraph(parts, scope, withTiles);
      const { plan, hidden, ops } = parts;
      for (const op of plan.ops.slice(0, headStart(plan))) forward.#run(op);
      const value = forward.#values.get(hiddenValue(plan))!;
      const kept = hidden.update(forward.#ints('hiddenRows', [-1]), value);
      ops.group([kept, ...forward.#kept], `${scope}/done`);
    });
  }

  #ints(name: string, shape: readonly number[]): Output {
    return this.#feed(name, DType.int32, shape);
  }

  #attentionFeeds(withTiles: boolean): AttentionFeeds {
    const { tokensPerBlock, rule } = this.#parts;
    const looksUp = withTiles || looksUpResults(rule);
    const places = blocksPerUnit(tokensPerBlock) * tokensPerBlock;
    return {
      singleOwner: this.#ints('singleOwner', [-1]),
      singleSlices: this.#ints('singleSlices', [-1]),
      singleKeyPlaces: this.#ints('singleKeyPlaces', [-1, places]),
      singlePlaces: this.#ints('singlePlaces', [-1]),
      singleRows: looksUp ? this.#ints('singleRows', [-1]) : '',
      tiles: withTiles
        ? {
            owner: this.#ints('tileOwner', [-1]),
            slices: this.#ints('tileSlices', [-1]),
            keyPlaces: this.#ints('tileKeyPlaces', [-1, places]),
            rows: this.#ints('tileRows', [-1]),
            places: this.#ints('tilePlaces', [-1, TILE_ROWS]),
          }
        : null,
      results: looksUp ? this.#ints('results', [-1]) : null,
    };
  }

  #value(index: number): Output {
    return this.#values.get(index)!;
  }

  #run(op: PlanOp): void {
    const { ops, weights, plan } = this.#parts;
    switch (op.op) {
      case 'embedding':
        this.#values.set(op.output, this.#embedding(op));
        return;
      case 'addEmbedding': {
        const rows = weights.rows(op.weight, this.#ints(op.by, [-1]));
        const { scale = 1 } = op;
        const scaled = scale === 1 ? rows : ops.mul(rows, ops.float(scale));
        this.#values.set(op.output, ops.add(this.#value(op.output), scaled));
        return;
      }
      case 'addPromptRows': {
        const { width } = plan.values[op.value]!;
        const sum = this.#withPromptRows('TensorScatterAdd', this.#value(op.value), op.first, width);
        this.#values.set(op.value, sum);
        return;
      }
      case 'rmsNormHeads':
      case 'layerNormHeads':
        this.#values.set(op.value, this.#normHeads(op));
        return;
      case 'ropeAndCache':
        this.#turned.set(op.qkv, this.#ropeAndCache(op));
        return;
      case 'attention':
        this.#values.set(op.output, this.#attend(op));
        return;
      default:
        runRowOp(op, { ops, weights, plan, values: this.#values });
    }
  }

  #embedding(op: Extract<PlanOp, { op: 'embedding' }>): Output {
    const { ops, weights, plan } = this.#parts;
    const looked = weights.rows(op.weight, this.#ints('tokenIds', [-1]));
    const scaled = op.scale === undefined || op.scale === 1 ? looked : ops.mul(looked, ops.float(op.scale));
    return this.#withPromptRows('TensorScatterUpdate', scaled, 0, plan.values[op.output]!.width);
  }

  /** Columns [first, first + width) of the prompts' own rows, in the place of their tokens' rows or added to them. */
  #withPromptRows(
    kind: 'TensorScatterUpdate' | 'TensorScatterAdd',
    value: Output,
    first: number,
    width: number,
  ): Output {
    const { ops, plan } = this.#parts;
    const all = promptRowWidth(plan);
    const rows = this.#feed('promptValues', DType.float, [-1, all]);
    const [, own] = ops.split(rows, [first, width, all - first - width], 1);
    const attributes = { T: { type: DType.float }, Tindices: { type: DType.int32 } };
    const inputs = [value, this.#ints('promptRows', [-1, 1]), own!];
    return ops.graph.node(kind, { inputs, attributes });
  }

  #normHeads(op: Extract<PlanOp, { op: 'rmsNormHeads' | 'layerNormHeads' }>): Output {
    const { ops, weights, plan } = this.#parts;
    const { value, first, heads, weight, epsilon } = op;
    const isRms = op.op === 'rmsNormHeads';
    const total = plan.values[value]!.width;
    const { columns } = weight === null ? op : plan.weights.find(({ name }) => name === weight)!;
    const width = isRms ? columns : columns / heads;
    const [before, own, behind] = ops.split(
      this.#value(value),
      [first, heads * width, total - first - heads * width],
      1,
    );
    const scales = weight === null ? ops.float(1) : weights.vector(weight);
    const apart = ops.reshape(own!, [-1, heads, width]);
    const normed = isRms
      ? rmsNorm(ops, apart, scales, epsilon, 2)
      : layerNorm(ops, apart, { weight: ops.reshape(scales, [1, heads, width]), bias: null }, epsilon, 2);
    return ops.concat([before!, ops.reshape(normed, [-1, heads * width]), behind!], 1);
  }

  #ropeAndCache({ qkv, layer, table, norms }: Extract<PlanOp, { op: 'ropeAndCache' }>): Turned {
    const { ops, plan, window, weights } = this.#parts;
    const { numHeads, numKvHeads, headDim } = plan.attention;
    const turnedHeads = numHeads + numKvHeads;
    const [unturned, values] = ops.split(this.#value(qkv), [turnedHeads * headDim, numKvHeads * headDim], 1);
    const apart = (x: Output) =>
      ops.split(x, [numHeads * headDim, numKvHeads * headDim], 1) as [Output, Output];
    const normed = (x: Output, heads: number, weight: string | undefined) => {
      if (weight === undefined) return x;
      const own = ops.reshape(x, [-1, heads, headDim]);
      return ops.reshape(rmsNorm(ops, own, weights.vector(weight), norms!.epsilon, 2), [-1, heads * headDim]);
    };
    const turned = apart(this.#turn(unturned!, turnedHeads, table === undefined ? '' : String(table)));
    const queries = normed(turned[0], numHeads, norms?.query);
    const keys = normed(turned[1], numKvHeads, norms?.key);
    const hasSinks = (window?.sinkTokenLength ?? 0) > 0;
    const sinkQueries = hasSinks
      ? normed(this.#turn(apart(unturned!)[0], numHeads, 'Sinks'), numHeads, norms?.query)
      : null;
    const written = this.#write(layer, keys, values!);
    return { queries, sinkQueries, written, keys, values: values! };
  }

  /** Rotates half-split pairs of each head [rows x heads * headDim], by the angles of that name. */
  #turn(x: Output, heads: number, name: string): Output {
    const { ops, plan } = this.#parts;
    const { headDim, rotaryDim } = plan.attention;
    if (rotaryDim === 0) return x;
    const half = rotaryDim / 2;
    const cosine = this.#feed(`cosine${name}`, DType.float, [-1, 1, half]);
    const sine = this.#feed(`sine${name}`, DType.float, [-1, 1, half]);
    const rest = headDim - rotaryDim;
    const sizes = rest === 0 ? [half, half] : [half, half, rest];
    const [a, b, unturned] = ops.split(ops.reshape(x, [-1, heads, headDim]), sizes, 2);
    const left = ops.sub(ops.mul(a!, cosine), ops.mul(b!, sine));
    const right = ops.add(ops.mul(b!, cosine), ops.mul(a!, sine));
    const parts = rest === 0 ? [left, right] : [left, right, unturned!];
    return ops.reshape(ops.concat(parts, 2), [-1, heads * headDim]);
  }

  /**
   * Writes keys and values, after the new blocks are zeroed, separately held chunks have been copied, and the layer that
   * wrote this cache before has read it.
   */
  #write(layer: number, keys: Output, values: Output): Output[] {
    const { pool, window } = this.#parts;
    const zeroed = this.#ints('zeroed', [-1]);
    const places = this.#ints('writes', [-1, 2]);
    return [
      { variable: pool.keys(layer), rows: keys },
      { variable: pool.values(layer), rows: values },
    ].map(({ variable, rows }) => {
      const readers = this.#readers.get(variable);
      if (readers !== undefined) return variable.updateAt(places, this.#stored(rows), readers);
      let before = pool.zero(variable, zeroed);
      if (window !== null) {
        const source = variable.gather(this.#ints('copiesFrom', [-1]), [before]);
        before = variable.update(this.#ints('copiesTo', [-1]), source);
      }
      return variable.updateAt(places, this.#stored(rows), [before]);
    });
  }

  /** Arranges [rows x kvHeads * headDim] as in the cache [rows * kvHeads, headDim]. */
  #stored(rows: Output): Output {
    const { ops, pool, plan } = this.#parts;
    return ops.cast(ops.reshape(rows, [-1, plan.attention.headDim]), DType.float, pool.dtype);
  }

  #attend(op: Extract<PlanOp, { op: 'attention' }>): Output {
    const { ops, pool, window, weights } = this.#parts;
    const { queries, sinkQueries, written, ...turned } = this.#turned.get(op.qkv)!;
    const sinkLogits = op.sinkLogits === undefined ? null : weights.vector(op.sinkLogits);
    const { result, read } = this.#attention.attend(op, queries, sinkQueries, written, sinkLogits);
    for (const variable of [pool.keys(op.layer), pool.values(op.layer)]) this.#readers.set(variable, read);
    if (window === null) return result;
    const rows = this.#ints('keptRows', [-1]);
    const places = this.#ints('keptWrites', [-1, 2]);
    for (const { variable, from } of [
      { variable: pool.keys(op.layer), from: turned.keys },
      { variable: pool.values(op.layer), from: turned.values },
    ]) {
      this.#kept.push(variable.updateAt(places, this.#stored(ops.gather(from, rows)), read));
    }
    return result;
  }
}

interface RowOpContext {
  ops: Ops;
  weights: NetworkWeights;
  plan: UniformPlan;
  values: Map<number, Output>;
}

/** Runs an op that is the same for rows of tokens and rows of logits. */
export function runRowOp(op: PlanOp, { ops, weights, plan, values }: RowOpContext): void {
  const value = (index: number) => values.get(index)!;
  const plus = (x: Output, added: number | null | undefined) =>
    added == null ? x : ops.add(x, value(added));
  switch (op.op) {
    case 'rmsNorm': {
      const normed = rmsNorm(ops, value(op.input), weights.vector(op.weight), op.epsilon, 1);
      values.set(op.output, plus(normed, op.residual));
      return;
    }
    case 'layerNorm': {
      const bias = op.bias === null ? null : weights.vector(op.bias);
      const normed = layerNorm(
        ops,
        value(op.input),
        { weight: weights.vector(op.weight), bias },
        op.epsilon,
        1,
      );
      values.set(op.output, normed);
      return;
    }
    case 'linear': {
      const product = weights.product(value(op.input), op.weight);
      const biased = op.bias === null ? product : ops.add(product, weights.vector(op.bias));
      values.set(op.output, plus(activate(ops, biased, op.activation), op.residual));
      return;
    }
    case 'gatedLinear': {
      const product = weights.product(value(op.input), op.weight);
      const biased = op.bias === null ? product : ops.add(product, weights.vector(op.bias));
      const width = plan.values[op.output]!.width;
      const [gate, up] = ops.split(biased, [width, width], 1);
      values.set(op.output, ops.mul(activate(ops, gate!, op.activation), up!));
      return;
    }
    case 'experts':
      values.set(op.output, plus(mixture(op, { ops, weights, plan, value }), op.residual));
      return;
    case 'gate': {
      const widths = [plan.values[op.value]!.width, plan.values[op.by]!.width] as const;
      values.set(op.value, gated(ops, value(op.value), value(op.by), op, widths));
      return;
    }
    case 'softCap':
      values.set(op.value, softCap(ops, value(op.value), op.cap));
      return;
    case 'xielu':
      values.set(op.value, xielu(ops, value(op.value), op));
      return;
    case 'normalize':
      values.set(op.output, unitRows(ops, value(op.input)));
      return;
    case 'join':
      values.set(op.output, ops.concat([value(op.input), value(op.other)], 1));
      return;
    default:
      throw new Error(`TensorFlow: the op ${op.op} is none over rows of logits.`);
  }
}
