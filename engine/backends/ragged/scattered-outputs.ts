import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { splitElements } from '../gather.js';
import { reshaped } from '../reshaped.js';
import type { DescribedRow } from './batch-inputs.js';

/**
 * Outputs whose elements are split by the shapes of an input, as `batch_output` says: where `dims` of the output has -1, a request has the
 * size that its input has there.
 *
 *   Y, dims [-1]     [y0 y1 y2 y3 y4 y5 y6]   ->   a: [1,3] y0 y1 y2      b: [1,4] y3 y4 y5 y6          as X of a is [1,3], of b [1,4]
 */
export class ScatteredOutputs {
  readonly #config: ModelConfig;
  /** The source of each output. */
  readonly #sources: ReadonlyMap<string, string>;

  constructor(config: ModelConfig) {
    this.#config = config;
    const outputs = config.batch_output ?? [];
    this.#sources = new Map(
      outputs.flatMap(({ target_name: targets, source_input: [source] }) =>
        targets.map((target) => [target, source!] as const),
      ),
    );
  }

  has(name: string): boolean {
    return this.#sources.has(name);
  }

  /** The shape that a request has of an output, as the model gives it. */
  shapeOf(name: string, { inputs }: Pick<DescribedRow, 'inputs'>): number[] {
    const { dims, reshape } = this.#config.output.find((one) => one.name === name)!;
    const { shape } = inputs.find((one) => one.name === this.#sources.get(name))!;
    return [-1, ...(reshape?.shape ?? dims)].map((size, i) => (size === -1 ? shape[i]! : size));
  }

  /** The parts of the rows, in the shapes that clients see. @throws BackendError where the output has not as many elements as they take */
  split(tensor: InferTensor, rows: readonly DescribedRow[]): InferTensor[] {
    const { dims, reshape } = this.#config.output.find((one) => one.name === tensor.name)!;
    const parts = splitElements(
      tensor,
      rows.map((row) => this.shapeOf(tensor.name, row)),
    );
    return reshape === undefined ? parts : parts.map((part) => reshaped(part, dims, true));
  }
}
