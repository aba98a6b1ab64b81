import type { NetworkPlan, PlanWeight } from '../../../network/plan.js';
import { multipliedWeights } from '../../../network/products.js';
import { DType, type Graph, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import { Variable } from './graph/variable.js';

/** A weight on the device: products are fastest with [columns x rows]; a weight that is only looked up is kept by rows. */
interface HeldWeight {
  weight: PlanWeight;
  variable: Variable;
  isTransposed: boolean;
  dtype: DType;
}

/**
 * Bytes of weights that are filled by one call, roughly: each call for other nodes makes TensorFlow search
 * the graph again.
 */
const BYTES_AT_ONCE = 64 << 20;

/** Weights that are filled together: a feed for each, and the node to run. */
export interface WeightLoad {
  weights: { weight: PlanWeight; feed: string }[];
  run: string;
}

/** The weights of a plan as variables, and the nodes that fill them. */
export class NetworkWeights {
  readonly loads: WeightLoad[] = [];
  readonly #held = new Map<string, HeldWeight>();
  readonly #ops: Ops;

  /** @param matrixType type of the matrices that products read; float32 or bfloat16 */
  constructor(ops: Ops, plan: NetworkPlan, matrixType: DType) {
    this.#ops = ops;
    const multiplied = multipliedWeights(plan);
    let bytes = Number.POSITIVE_INFINITY;
    let filled: Output[] = [];
    const end = () => {
      if (filled.length > 0) ops.group(filled, this.loads.at(-1)!.run);
      filled = [];
    };
    for (const [index, weight] of plan.weights.entries()) {
      const size = 4 * weight.rows * weight.columns;
      if (bytes + size > BYTES_AT_ONCE) {
        end();
        this.loads.push({ weights: [], run: `loaded/${this.loads.length}` });
        bytes = 0;
      }
      bytes += size;
      const isTransposed = weight.kind === 'matrix' && multiplied.has(weight.name);
      const dtype = isTransposed ? matrixType : DType.float;
      const feed = `load/${index}`;
      this.loads.at(-1)!.weights.push({ weight, feed });
      const held = this.#hold(ops.graph, weight, { feed, isTransposed, dtype });
      this.#held.set(weight.name, held.held);
      filled.push(held.filled);
    }
    end();
  }

  /** Number of bytes of all weights. */
  get bytes(): number {
    let bytes = 0;
    for (const { weight, dtype } of this.#held.values())
      bytes += weight.rows * weight.columns * (dtype === DType.float ? 4 : 2);
    return bytes;
  }

  vector(name: string): Output {
    return this.#of(name).variable.read();
  }

  /** Looks up rows of a matrix; if it is multiplied too, they are its columns on the device. */
  rows(name: string, indices: Output): Output {
    const { variable, isTransposed, dtype } = this.#of(name);
    const ops = this.#ops;
    if (!isTransposed) return ops.gather(variable.read(), indices);
    const columns = ops.cast(ops.gather(variable.read(), indices, dtype, 1), dtype, DType.float);
    return ops.transpose(columns, [1, 0]);
  }

  /** Multiplies input [rows x columns] by the weight's transpose [columns x rows]. */
  product(input: Output, name: string): Output {
    const { variable, dtype } = this.#of(name);
    const ops = this.#ops;
    const narrowed = ops.cast(input, DType.float, dtype);
    return ops.cast(ops.matMul(narrowed, variable.read(), dtype), dtype, DType.float);
  }

  #hold(
    graph: Graph,
    weight: PlanWeight,
    { feed, isTransposed, dtype }: { feed: string; isTransposed: boolean; dtype: DType },
  ): { held: HeldWeight; filled: Output } {
    const { rows, columns, kind } = weight;
    const fed = kind === 'vector' ? [columns] : [rows, columns];
    const shape = isTransposed ? [columns, rows] : fed;
    const variable = new Variable(graph, `of/${feed}`, { dtype, shape });
    const value = graph.placeholder(feed, DType.float, fed);
    const laidOut = isTransposed ? this.#ops.transpose(value, [1, 0]) : value;
    const filled = variable.assign(this.#ops.cast(laidOut, DType.float, dtype));
    return { held: { weight, variable, isTransposed, dtype }, filled };
  }

  #of(name: string): HeldWeight {
    const held = this.#held.get(name);
    if (held === undefined) throw new Error(`The plan has no weight ${name}.`);
    return held;
  }
}
