import type { NetworkPlan, PlanOp, PlanWeight } from '../../../network/plan.js';
import { productsOf } from '../../../network/products.js';
import type { RunnableEngine } from '../portable/network-runner.js';
import { WeightReader } from '../portable/weights/weight-reader.js';
import type { PackedMatrix, WasmHeap } from './heap.js';
import { productWeights, tableWeights, vectorWeights } from './memory-layout.js';

/** An engine's weights in the form that the ops use, all of them f32. */
export interface WasmWeights {
  products: PackedProducts;
  /** Pointers of vectors; those of convolutions [taps x columns]. */
  vectors: Map<string, number>;
  /** Tables for looking up rows [rows x columns], outside of the heap. */
  tables: Map<string, Float32Array>;
}

/** Number of rows that are transposed at once: both they and the result stay in cache. */
const ROWS_TURNED = 32;

/**
 * Reads all weights of an engine.
 *
 * @param staging memory for matrices until they are packed
 * @param take takes memory for good
 */
export function loadWeights(
  engine: RunnableEngine,
  heap: WasmHeap,
  staging: number,
  take: (bytes: number) => number,
): WasmWeights {
  const { plan } = engine;
  const reader = new WeightReader(engine);
  try {
    const tables = new Map(tableWeights(plan).map(({ name }) => [name, reader.read(name)]));
    const vectors = new Map<string, number>();
    const taps = tapsOf(plan);
    for (const { name, columns } of vectorWeights(plan)) {
      const pointer = take(4 * columns);
      const values = heap.floatsAt(pointer, columns);
      reader.read(name, undefined, values);
      if (taps.has(name)) turnTaps(values, taps.get(name)!);
      vectors.set(name, pointer);
    }
    return { products: packProducts(plan, heap, reader, staging), vectors, tables };
  } finally {
    reader.close();
  }
}

/** Taps of the weights of convolutions. */
function tapsOf({ ops }: NetworkPlan): Map<string, number> {
  return new Map(ops.flatMap((op) => (op.op === 'shortConv' ? [[op.weight, op.taps]] : [])));
}

/** Turns a weight [columns x taps] to [taps x columns] in place: the columns of a tap lie side by side, as the kernel reads them. */
function turnTaps(weight: Float32Array, taps: number): void {
  const columns = weight.length / taps;
  const read = weight.slice();
  for (let column = 0; column < columns; column++)
    for (let tap = 0; tap < taps; tap++) weight[tap * columns + column] = read[column * taps + tap]!;
}

/** Packs matrices one after the other; one that several ops multiply by with the same bias is packed once. */
function packProducts(
  plan: NetworkPlan,
  heap: WasmHeap,
  reader: WeightReader,
  staging: number,
): PackedProducts {
  const weights = new Map(productWeights(plan).map((weight) => [weight.name, weight]));
  const products = new PackedProducts();
  for (const op of plan.ops) {
    const biases = biasesOf(op);
    for (const [index, { weight: name }] of productsOf(op).entries()) {
      const bias = biases[index] ?? null;
      if (products.has(name, bias)) continue;
      const weight = weights.get(name)!;
      readTurned(weight, reader, heap, staging);
      if (bias !== null) readBias(bias, weight, reader, heap, staging);
      products.add(name, bias, heap.pack(staging, weight.columns, weight.rows, bias !== null));
    }
  }
  return products;
}

/** The biases of an op's products, in their order; those that are missing have none. */
function biasesOf(op: PlanOp): (string | null)[] {
  if (op.op !== 'experts') return 'bias' in op ? [op.bias] : [];
  return op.biases?.gateUp.flatMap((bias, expert) => [bias, op.biases!.down[expert]!]) ?? [];
}

/** Transposes a weight [rows x columns] of weights.bin to [columns x rows], as products need it. */
function readTurned({ name, rows, columns }: PlanWeight, reader: WeightReader, heap: WasmHeap, at: number) {
  const target = heap.floatsAt(at, rows * columns);
  const piece = new Float32Array(ROWS_TURNED * columns);
  for (let first = 0; first < rows; first += ROWS_TURNED) {
    const count = Math.min(ROWS_TURNED, rows - first);
    const read = reader.read(name, { first, count }, piece.subarray(0, count * columns));
    for (let column = 0; column < columns; column++) {
      const begin = column * rows + first;
      for (let row = 0; row < count; row++) target[begin + row] = read[row * columns + column]!;
    }
  }
}

function readBias(
  name: string,
  { rows, columns }: PlanWeight,
  reader: WeightReader,
  heap: WasmHeap,
  at: number,
): void {
  reader.read(name, undefined, heap.floatsAt(at + 4 * rows * columns, rows));
}

/** The packed matrices of products, by weight and bias: a weight with two biases is packed with each of them. */
class PackedProducts {
  readonly #byWeight = new Map<string, Map<string | null, PackedMatrix>>();

  /** @param bias null: the product has none */
  add(weight: string, bias: string | null, matrix: PackedMatrix): void {
    const byBias = this.#byWeight.get(weight) ?? new Map<string | null, PackedMatrix>();
    this.#byWeight.set(weight, byBias.set(bias, matrix));
  }

  has(weight: string, bias: string | null): boolean {
    return this.#byWeight.get(weight)?.has(bias) ?? false;
  }

  of(weight: string, bias: string | null = null): PackedMatrix {
    const matrix = this.#byWeight.get(weight)?.get(bias);
    if (matrix === undefined) throw new Error(`${weight} has not been packed with the bias ${bias}.`);
    return matrix;
  }
}
