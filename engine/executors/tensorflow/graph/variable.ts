import { DType, type Graph, type Output } from './graph.js';

export interface VariableShape {
  dtype: DType;
  shape: readonly number[];
}

/**
 * A tensor that stays on the device from one run to the next. Rows are changed in place. Each variable is either gathered
 * from or read as a whole, since TensorFlow would copy one that is read while its rows are gathered.
 */
export class Variable {
  readonly #handle: Output;
  readonly dtype: DType;

  constructor(
    readonly graph: Graph,
    readonly name: string,
    readonly options: VariableShape,
  ) {
    this.dtype = options.dtype;
    const attributes = {
      dtype: { type: options.dtype },
      shape: { shape: options.shape },
      shared_name: { text: name },
      container: { text: '' },
    };
    this.#handle = graph.node('VarHandleOp', { attributes }, `variable/${name}`);
  }

  /** Returns the node that assigns. */
  assign(value: Output): Output {
    return this.#node('AssignVariableOp', [value], { dtype: { type: this.dtype } });
  }

  read(after: readonly Output[] = []): Output {
    return this.#node('ReadVariableOp', [], { dtype: { type: this.dtype } }, after);
  }

  /** Reads slices along the first axis. */
  gather(indices: Output, after: readonly Output[] = []): Output {
    const attributes = {
      dtype: { type: this.dtype },
      Tindices: { type: DType.int32 },
      validate_indices: { bool: true },
    };
    return this.#node('ResourceGather', [indices], attributes, after);
  }

  /** Writes slices along the first axis. Returns the node that writes. */
  update(indices: Output, values: Output, after: readonly Output[] = []): Output {
    const attributes = { dtype: { type: this.dtype }, Tindices: { type: DType.int32 } };
    return this.#node('ResourceScatterUpdate', [indices, values], attributes, after);
  }

  /**
   * Writes slices along the first axes, as many as the last axis of the indices has entries. Returns the node that
   * writes.
   */
  updateAt(indices: Output, values: Output, after: readonly Output[] = []): Output {
    const attributes = { T: { type: this.dtype }, Tindices: { type: DType.int32 } };
    return this.#node('ResourceScatterNdUpdate', [indices, values], attributes, after);
  }

  #node(
    op: string,
    inputs: readonly Output[],
    attributes: Record<string, { type: DType } | { bool: boolean }>,
    after: readonly Output[] = [],
  ): Output {
    return this.graph.node(op, { inputs: [this.#handle, ...inputs], attributes, after });
  }
}
