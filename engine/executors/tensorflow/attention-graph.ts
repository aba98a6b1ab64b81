import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { AttentionMask, PlanOp } from '../../../network/plan.js';
import type { UniformPlan } from '../cache-layers.js';
import { TILE_ROWS } from './attention-units.js';
import { DType, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import type { KvPool } from './kv-pool.js';
import { softCap } from './row-ops.js';

/** Value added to a masked score: its weight is then 0, and a fully masked unit has no infinities. */
const MASKED = -1e30;
/** Numbers of the widest vectors. */
const VECTOR = 16;

export interface AttentionFeeds {
  /**
   * Units of single rows: owners [U], slices of the pool [U * kvHeads * blocks of a unit], places [U x places of a unit]; see
   * PackedStep.
   */
  singleOwner: Output;
  singleSlices: Output;
  singleKeyPlaces: Output;
  /** Row of each owner's query, and its place; without `results` the owners are the rows themselves. */
  singleRows: Output;
  singlePlaces: Output;
  /** Units of tiles, in the same form; null in a graph for steps without them. */
  tiles: {
    owner: Output;
    slices: Output;
    keyPlaces: Output;
    rows: Output;
    places: Output;
  } | null;
  /** Index of each row among the results; null: the results are the rows. */
  results: Output | null;
}

export interface AttentionGraphOptions {
  attention: UniformPlan['attention'];
  window: AttentionWindow | null;
  tokensPerBlock: number;
  blocksPerUnit: number;
  /** The number of rows in a product is a multiple of this. */
  rowMultiple: number;
}

type AttentionOp = Extract<PlanOp, { op: 'attention' }>;

/** Units of one kind, with the sizes of their products. */
interface Kind {
  /** Number of rows of one owner: 1, or those of a tile. */
  rows: number;
  /** Number of heads that share keys, filled up so that a product has an allowed number of rows. */
  group: number;
  owner: Output;
  slices: Output;
  keyPlaces: Output;
}

/**
 * Attention over units of one size (see attention-units.ts), the same ops for any number of them:
 *
 *   scores = q . K + mask               [U * kvHeads, rows * group, places of a unit]
 *   greatest of each owner              SegmentMax, then gathered back to its units
 *   exp, their sums, times V            SegmentSum of both over an owner's units, then the quotient
 */
export class AttentionGraph {
  readonly #ops: Ops;
  readonly #pool: KvPool;
  readonly #feeds: AttentionFeeds;
  readonly #options: AttentionGraphOptions;
  readonly #masks = new Map<string, Output>();
  readonly #sinks = new Map<string, Output>();

  constructor(ops: Ops, pool: KvPool, feeds: AttentionFeeds, options: AttentionGraphOptions) {
    this.#ops = ops;
    this.#pool = pool;
    this.#feeds = feeds;
    this.#options = options;
  }

  /**
   * @param queries [rows x heads * headDim], rotated to their places; `sinkQueries`: rotated for the products with
   *   sinks
   * @param after nodes that write keys and values
   * @param sinkLogits a further score of each head, [heads]; null: none
   * @returns the result [rows x heads * headDim], and the nodes that have read the cache.
   */
  attend(
    op: AttentionOp,
    queries: Output,
    sinkQueries: Output | null,
    after: readonly Output[],
    sinkLogits: Output | null,
  ): { result: Output; read: Output[] } {
    const ops = this.#ops;
    const { singleOwner, singleSlices, singleKeyPlaces, singleRows, tiles, results } = this.#feeds;
    const { numHeads, headDim, numKvHeads } = this.#options.attention;
    const group = numHeads / numKvHeads;
    const scale = ops.float(op.scale);
    const scaled = ops.mul(queries, scale);
    const scaledSinks = sinkQueries === null ? null : ops.mul(sinkQueries, scale);
    const single: Kind = {
      rows: 1,
      group: filled(group, this.#options.rowMultiple),
      owner: singleOwner,
      slices: singleSlices,
      keyPlaces: singleKeyPlaces,
    };
    const queriesOf = (all: Output) =>
      this.#singleQueries(results === null ? all : ops.gather(all, singleRows), single);
    const sinksOfSingle = scaledSinks === null ? null : queriesOf(scaledSinks);
    const singles = this.#kind(op, single, [queriesOf(scaled), sinksOfSingle], after, sinkLogits);
    if (results === null) return singles;
    if (tiles === null) return { ...singles, result: ops.gather(singles.result, results) };
    const kind: Kind = {
      rows: TILE_ROWS,
      group,
      owner: tiles.owner,
      slices: tiles.slices,
      keyPlaces: tiles.keyPlaces,
    };
    const tileQueries = (all: Output) => this.#tileQueries(ops.gather(all, tiles.rows), kind);
    const sinksOfTiles = scaledSinks === null ? null : tileQueries(scaledSinks);
    const tiled = this.#kind(op, kind, [tileQueries(scaled), sinksOfTiles], after, sinkLogits);
    const apart = ops.reshape(tiled.result, [-1, numKvHeads, TILE_ROWS, group * headDim]);
    const rows = ops.reshape(ops.transpose(apart, [0, 2, 1, 3]), [-1, numHeads * headDim]);
    const result = ops.gather(ops.concat([singles.result, rows], 0), results);
    return { result, read: [...singles.read, ...tiled.read] };
  }

  /** Arranges queries [owners, heads * headDim] as [U * kvHeads, group, headDim]. */
  #singleQueries(queries: Output, { owner, group }: Kind): Output {
    const ops = this.#ops;
    const { numHeads, numKvHeads, headDim } = this.#options.attention;
    const missing = group - numHeads / numKvHeads;
    if (missing === 0) return ops.reshape(ops.gather(queries, owner), [-1, group, headDim]);
    const apart = ops.reshape(queries, [-1, numKvHeads, group - missing, headDim]);
    const filledUp = ops.reshape(ops.pad(apart, [0, 0, missing, 0]), [-1, numKvHeads * group * headDim]);
    return ops.reshape(ops.gather(filledUp, owner), [-1, group, headDim]);
  }

  /** Arranges queries [tiles * rows, heads * headDim] as [U * kvHeads, rows * group, headDim]. */
  #tileQueries(queries: Output, { owner, rows }: Kind): Output {
    const ops = this.#ops;
    const { numHeads, numKvHeads, headDim } = this.#options.attention;
    const group = numHeads / numKvHeads;
    const apart = ops.reshape(queries, [-1, rows, numKvHeads, group * headDim]);
    const byHead = ops.reshape(ops.transpose(apart, [0, 2, 1, 3]), [-1, numKvHeads * rows * group * headDim]);
    return ops.reshape(ops.gather(byHead, owner), [-1, rows * group, headDim]);
  }

  #kind(
    op: AttentionOp,
    kind: Kind,
    [queries, sinkQueries]: [Output, Output | null],
    after: readonly Output[],
    sinkLogits: Output | null,
  ): { result: Output; read: Output[] } {
    const ops = this.#ops;
    const { attention, tokensPerBlock, blocksPerUnit } = this.#options;
    const { numHeads, numKvHeads, headDim } = attention;
    const places = tokensPerBlock * blocksPerUnit;
    const perOwner = kind.rows * kind.group;
    const keyNode = this.#pool.keys(op.layer).gather(kind.slices, after);
    const wide = (x: Output) =>
      ops.reshape(ops.cast(x, this.#pool.dtype, DType.float), [-1, places, headDim]);
    const keys = wide(keyNode);
    const scored = (q: Output) => {
      const product = ops.batchMatMul(q, keys, { transposed: true });
      return op.softCap === undefined ? product : softCap(ops, product, op.softCap);
    };
    const grouped = [-1, numKvHeads, kind.rows, kind.group, places];
    let scores = ops.reshape(scored(queries), grouped);
    if (sinkQueries !== null) {
      scores = ops.select(this.#areSinks(kind), ops.reshape(scored(sinkQueries), grouped), scores);
    }
    const masked = ops.reshape(ops.add(scores, this.#mask(kind, op.mask ?? {})), [
      -1,
      numKvHeads * perOwner,
      places,
    ]);
    const greatest = ops.segment('Max', ops.max(masked, 2), kind.owner);
    const weights = ops.exp(ops.sub(masked, ops.expand(ops.gather(greatest, kind.owner), 2)));
    const ofKeys = ops.segment('Sum', ops.sum(weights, 2), kind.owner);
    const sums = sinkLogits === null ? ofKeys : this.#withSinks(kind, ofKeys, greatest, sinkLogits);
    // Values are gathered once the keys, which waited for `after`, are used up: on a CPU a step is some 5 % faster than
    // with both at once.
    const valueNode = this.#pool.values(op.layer).gather(kind.slices, [scores]);
    const product = ops.batchMatMul(ops.reshape(weights, [-1, perOwner, places]), wide(valueNode));
    const added = ops.segment('Sum', ops.reshape(product, [-1, numKvHeads * perOwner, headDim]), kind.owner);
    const divided = ops.div(added, ops.expand(sums, 2));
    const group = numHeads / numKvHeads;
    const own =
      kind.group === group
        ? divided
        : ops.first(ops.reshape(divided, [-1, numKvHeads, kind.group, headDim]), [-1, -1, group, -1]);
    const result = ops.reshape(own, [-1, kind.rows * numHeads * headDim]);
    return { result, read: [keyNode, valueNode] };
  }

  /**
   * The sums of weights with those of scores that have no value, [owners, kvHeads * rows * group], as against the greatest of the keys. Each
   * exponential has a vector for itself: a row's bits depend on no other's place.
   */
  #withSinks({ rows, group }: Kind, sums: Output, greatest: Output, logits: Output): Output {
    const ops = this.#ops;
    const { numHeads, numKvHeads } = this.#options.attention;
    const own = numHeads / numKvHeads;
    const byHead = ops.pad(ops.reshape(logits, [1, numKvHeads, 1, own]), [0, 0, 0, group - own]);
    const gaps = ops.sub(byHead, ops.reshape(greatest, [-1, numKvHeads, rows, group]));
    const wide = ops.exp(ops.pad(ops.expand(gaps, 4), [0, 0, 0, 0, VECTOR - 1]));
    return ops.add(sums, ops.reshape(ops.firstColumn(wide, 4), [-1, numKvHeads * rows * group]));
  }

  /** Mask added to scores [U, 1, rows, 1, places]: shared by all layers with the same window. */
  #mask(kind: Kind, own: AttentionMask): Output {
    const key = `${kind.owner}|${own.window}|${own.bothWays}`;
    const known = this.#masks.get(key);
    if (known !== undefined) return known;
    const ops = this.#ops;
    const keys = this.#spread(kind.keyPlaces, [-1, 1, 1, 1, this.#places]);
    const isKey = ops.greater(keys, ops.int(-1), DType.int32);
    const mask = ops.select(this.#sees(kind, keys, isKey, own), ops.float(0), ops.float(MASKED));
    this.#masks.set(key, mask);
    return mask;
  }

  #sees(kind: Kind, keys: Output, isKey: Output, mask: AttentionMask): Output {
    const ops = this.#ops;
    const { window } = this.#options;
    const { window: layerWindow, bothWays = false } = mask;
    if (bothWays && layerWindow === undefined) return isKey;
    const { singlePlaces, tiles } = this.#feeds;
    const own = kind.rows === 1 ? singlePlaces : tiles!.places;
    const byOwner = ops.reshape(own, [-1, kind.rows], DType.int32);
    const rows = this.#spread(ops.gather(byOwner, kind.owner, DType.int32), [-1, 1, kind.rows, 1, 1]);
    const back = ops.sub(rows, keys, DType.int32);
    const mostAhead = bothWays ? layerWindow! : 1;
    const isBefore = ops.and(isKey, ops.greater(back, ops.int(-mostAhead), DType.int32));
    const recent = Math.min(
      layerWindow ?? Number.POSITIVE_INFINITY,
      window === null ? Number.POSITIVE_INFINITY : window.maxAttentionWindow - window.sinkTokenLength,
    );
    if (recent === Number.POSITIVE_INFINITY) return isBefore;
    const isRecent = ops.less(back, ops.int(recent), DType.int32);
    const sinks = window?.sinkTokenLength ?? 0;
    const seen = sinks === 0 ? isRecent : ops.or(isRecent, ops.less(keys, ops.int(sinks), DType.int32));
    return ops.and(isBefore, seen);
  }

  #areSinks(kind: Kind): Output {
    const known = this.#sinks.get(kind.owner);
    if (known !== undefined) return known;
    const keys = this.#spread(kind.keyPlaces, [-1, 1, 1, 1, this.#places]);
    const sinks = this.#ops.less(keys, this.#ops.int(this.#options.window!.sinkTokenLength), DType.int32);
    this.#sinks.set(kind.owner, sinks);
    return sinks;
  }

  get #places(): number {
    return this.#options.tokensPerBlock * this.#options.blocksPerUnit;
  }

  #spread(x: Output, shape: number[]): Output {
    return this.#ops.reshape(x, shape, DType.int32);
  }
}

const filled = (count: number, multiple: number) => Math.ceil(count / multiple) * multiple;
