import type { NetworkPlan, PlanOp } from '../../../network/plan.js';
import type { ExecutorOptions } from '../executor.js';
import type { WasmHeap } from './heap.js';

type Products = Extract<PlanOp, { op: 'distanceProducts' }>;
type Biases = Extract<PlanOp, { op: 'distanceBiases' }>;

/** Pointers of a table: of biases [heads][columns], or of queries and keys [heads][headDim][columns] each; 0: it has none. */
export interface RelativeTable {
  biases: number;
  queries: number;
  keys: number;
}

/** Positions of a step of the attention: a row of a table has columns for all of the last one's. */
const STEP = 32;

/** Columns of a row: one for each distance of a key from its query, of which 0 has column maxSeqLen - 1. */
function relativeColumns({ maxSeqLen }: Pick<ExecutorOptions, 'maxSeqLen'>): number {
  return maxSeqLen + STEP * Math.ceil(maxSeqLen / STEP);
}

/** Floats of each table of a plan, in the order in which its ops make them. */
export function relativeFloats(plan: NetworkPlan, options: ExecutorOptions): number[] {
  const rows = plan.attention.numHeads * relativeColumns(options);
  return plan.ops.flatMap((op) => {
    if (op.op === 'distanceBiases') return [rows];
    return op.op === 'distanceProducts' ? [2 * rows * plan.caches[0]!.keyDim] : [];
  });
}

/**
 * What distances add to scores, by distance in place of bucket, so that the keys of a panel are neighbours:
 *
 *   column      0 ................. maxSeqLen - 1 ...
 *   distance    1 - maxSeqLen ..... 0 ...
 */
export class RelativeTables {
  readonly columns: number;
  readonly #heap: WasmHeap;
  readonly #numHeads: number;
  readonly #headDim: number;
  readonly #bucketOf: Int32Array;
  readonly #tables: RelativeTable[] = [];

  /** @param base pointer to relativeFloats() */
  constructor(plan: NetworkPlan, options: ExecutorOptions, heap: WasmHeap, base: number) {
    this.#heap = heap;
    this.columns = relativeColumns(options);
    this.#numHeads = plan.attention.numHeads;
    this.#headDim = plan.caches[0]?.keyDim ?? 0;
    const { buckets } = plan.attention.distances ?? { buckets: [0] };
    const reach = (buckets.length - 1) / 2;
    const zero = options.maxSeqLen - 1;
    this.#bucketOf = Int32Array.from({ length: this.columns }, (_, column) => {
      return buckets[Math.min(Math.max(column - zero, -reach), reach) + reach]!;
    });
    let at = base;
    for (const op of plan.ops) {
      if (op.op !== 'distanceBiases' && op.op !== 'distanceProducts') continue;
      const bytes = 4 * this.#numHeads * this.columns * (op.op === 'distanceBiases' ? 1 : this.#headDim);
      const isBiases = op.op === 'distanceBiases';
      this.#tables.push(
        isBiases ? { biases: at, queries: 0, keys: 0 } : { biases: 0, queries: at, keys: at + bytes },
      );
      at += isBiases ? bytes : 2 * bytes;
    }
  }

  /** The table of an attention op; undefined: its scores depend on no distances. */
  of(table: number | undefined): RelativeTable | undefined {
    return table === undefined ? undefined : this.#tables[table];
  }

  /** @param rows pointer to the value's rows [buckets x width] */
  keepProducts(op: Products, rows: number, width: number): void {
    const { queries, keys } = this.#tables[op.table]!;
    const heads = this.#numHeads * this.#headDim;
    this.#keep(queries, heads, { rows, width, first: op.queries });
    this.#keep(keys, heads, { rows, width, first: op.keys });
  }

  /** @param biases pointer to the vector [buckets x heads] */
  keepBiases(op: Biases, biases: number): void {
    const { biases: to } = this.#tables[op.table]!;
    this.#keep(to, this.#numHeads, { rows: biases, width: this.#numHeads, first: 0 });
  }

  /** Writes columns of rows of buckets, turned, by distance; zeros where there are none. */
  #keep(
    to: number,
    count: number,
    { rows, width, first }: { rows: number; width: number; first: number | null },
  ): void {
    const table = this.#heap.floatsAt(to, count * this.columns);
    if (first === null) {
      table.fill(0);
      return;
    }
    const from = this.#heap.floatsAt(rows, (Math.max(...this.#bucketOf) + 1) * width);
    for (let row = 0; row < count; row++) {
      const at = row * this.columns;
      for (let column = 0; column < this.columns; column++)
        table[at + column] = from[this.#bucketOf[column]! * width + first + row]!;
    }
  }
}
