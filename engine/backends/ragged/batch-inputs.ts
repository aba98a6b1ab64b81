import { elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { BatchInput, ModelConfig } from '../../../models/repository/model-config.js';

/** A request of a batch, or an empty row: its inputs in the shapes that the model has, the batch dimension first. */
export interface DescribedRow {
  readonly inputs: readonly InferTensor[];
  /** Rows. */
  readonly batchSize: number;
}

/** One request's part of a batch input: numbers, and the sizes after the first. */
interface Part {
  values: ArrayLike<number>;
  inner: readonly number[];
}

/**
 * Inputs that describe the requests of a batch, made when the batch is formed. Each request has its part; all parts, one after the other, are the
 * tensor of the batch:
 *
 *   source X of the requests                          a [1,3]    b [2,2]    c [1,5]        of the batch
 *   BATCH_ELEMENT_COUNT                               3          4          5              [3 4 5]
 *   BATCH_ACCUMULATED_ELEMENT_COUNT                   3          7          12             [3 7 12]
 *   BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO         0 3        7          12             [0 3 7 12]
 *   BATCH_MAX_ELEMENT_COUNT_AS_SHAPE                  0 0 0 0 0  -          -              [0 0 0 0 0]      its size is what it says
 *   BATCH_ITEM_SHAPE                                  [3]        [2] [2]    [5]            [[3] [2] [2] [5]]
 *   BATCH_ITEM_SHAPE_FLATTEN                          3          2 2        5              [3 2 2 5]
 *
 * Source: BatchInput of Triton's model_config.proto, and backend_input_collector.cc of github.com/triton-inference-server/backend, which counts
 * elements by request and items by row.
 */
export class BatchInputs {
  readonly #inputs: readonly BatchInput[];

  constructor({ batch_input: inputs = [] }: Pick<ModelConfig, 'batch_input'>) {
    this.#inputs = inputs;
  }

  /** Names, in the order in which `of` has them. */
  get names(): readonly string[] {
    return this.#inputs.flatMap((one) => one.target_name);
  }

  /** The inputs of each of the rows that are run together. */
  of(rows: readonly DescribedRow[]): InferTensor[][] {
    const all = this.#inputs.map((input) => ({ input, parts: partsOf(input, rows) }));
    return rows.map((_, i) => all.flatMap(({ input, parts }) => tensorsOf(input, parts[i]!)));
  }
}

function partsOf({ kind, source_input: [source] }: BatchInput, rows: readonly DescribedRow[]): Part[] {
  const shapes = rows.map(({ inputs }) => inputs.find(({ name }) => name === source)!.shape);
  const counts = shapes.map(elementsIn);
  switch (kind) {
    case 'BATCH_ELEMENT_COUNT':
      return counts.map((count) => list([count]));
    case 'BATCH_ACCUMULATED_ELEMENT_COUNT':
      return accumulated(counts).map((count) => list([count]));
    case 'BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO':
      return accumulated(counts).map((count, i) => list(i === 0 ? [0, count] : [count]));
    case 'BATCH_MAX_ELEMENT_COUNT_AS_SHAPE': {
      const most = counts.reduce((max, count) => Math.max(max, count), 0);
      return counts.map((_, i) => list(i === 0 ? new Int32Array(most) : []));
    }
    case 'BATCH_ITEM_SHAPE':
    case 'BATCH_ITEM_SHAPE_FLATTEN':
      return shapes.map(([, ...item], i) => {
        const values = Array.from({ length: rows[i]!.batchSize }, () => item).flat();
        return { values, inner: kind === 'BATCH_ITEM_SHAPE' ? [item.length] : [] };
      });
  }
}

const list = (values: ArrayLike<number>): Part => ({ values, inner: [] });

function accumulated(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => {
    sum += count;
    return sum;
  });
}

/** The part under each name that the input has. */
function tensorsOf(
  { target_name: targets, data_type: type }: BatchInput,
  { values, inner }: Part,
): InferTensor[] {
  const numbers = type === 'TYPE_INT32' ? Int32Array.from(values) : Float32Array.from(values);
  const width = elementsIn(inner);
  const shape = [width === 0 ? 0 : values.length / width, ...inner];
  const data = new Uint8Array(numbers.buffer);
  return targets.map((name) => ({ name, datatype: type === 'TYPE_INT32' ? 'INT32' : 'FP32', shape, data }));
}
