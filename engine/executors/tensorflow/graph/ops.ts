import { DType, type Graph, type Output, output } from './graph.js';

/** TensorFlow's ops that the networks use, with the types that they have there. The default type is float32. */
export class Ops {
  constructor(readonly graph: Graph) {}

  float(value: number): Output {
    return this.graph.constant(DType.float, [value], []);
  }

  int(value: number): Output {
    return this.graph.constant(DType.int32, [value], []);
  }

  ints(values: readonly number[]): Output {
    return this.graph.constant(DType.int32, values, [values.length]);
  }

  add = (a: Output, b: Output, type: DType = DType.float) => this.#same('AddV2', [a, b], type);
  sub = (a: Output, b: Output, type: DType = DType.float) => this.#same('Sub', [a, b], type);
  mul = (a: Output, b: Output, type: DType = DType.float) => this.#same('Mul', [a, b], type);
  div = (a: Output, b: Output, type: DType = DType.float) => this.#same('RealDiv', [a, b], type);
  greater = (a: Output, b: Output, type: DType = DType.float) => this.#same('Greater', [a, b], type);
  maximum = (a: Output, b: Output) => this.#same('Maximum', [a, b], DType.float);
  minimum = (a: Output, b: Output) => this.#same('Minimum', [a, b], DType.float);
  less = (a: Output, b: Output, type: DType = DType.float) => this.#same('Less', [a, b], type);
  equal = (a: Output, b: Output, type: DType = DType.float) => this.#same('Equal', [a, b], type);
  sqrt = (x: Output) => this.#same('Sqrt', [x], DType.float);
  square = (x: Output) => this.#same('Square', [x], DType.float);
  exp = (x: Output) => this.#same('Exp', [x], DType.float);
  expm1 = (x: Output) => this.#same('Expm1', [x], DType.float);
  tanh = (x: Output) => this.#same('Tanh', [x], DType.float);
  erf = (x: Output) => this.#same('Erf', [x], DType.float);
  sigmoid = (x: Output) => this.#same('Sigmoid', [x], DType.float);
  relu = (x: Output) => this.#same('Relu', [x], DType.float);
  isNan = (x: Output) => this.#same('IsNan', [x], DType.float);
  isFinite = (x: Output) => this.#same('IsFinite', [x], DType.float);
  select = (condition: Output, yes: Output, no: Output, type: DType = DType.float) =>
    this.#same('SelectV2', [condition, yes, no], type);
  and = (a: Output, b: Output) => this.graph.node('LogicalAnd', { inputs: [a, b] });
  or = (a: Output, b: Output) => this.graph.node('LogicalOr', { inputs: [a, b] });

  cast(x: Output, from: DType, to: DType): Output {
    if (from === to) return x;
    return this.graph.node('Cast', { inputs: [x], attributes: { SrcT: { type: from }, DstT: { type: to } } });
  }

  /** Multiplies [.., m, k] by [.., k, n], or by [.., n, k] if `transposed`. */
  batchMatMul(a: Output, b: Output, { transposed = false, type = DType.float as DType } = {}): Output {
    const attributes = { T: { type }, adj_x: { bool: false }, adj_y: { bool: transposed } };
    return this.graph.node('BatchMatMulV2', { inputs: [a, b], attributes });
  }

  /** Multiplies [m, k] by [k, n]. */
  matMul(a: Output, b: Output, type: DType = DType.float): Output {
    const attributes = { T: { type }, transpose_a: { bool: false }, transpose_b: { bool: false } };
    return this.graph.node('MatMul', { inputs: [a, b], attributes });
  }

  reshape(x: Output, shape: readonly number[], type: DType = DType.float): Output {
    const attributes = { T: { type }, Tshape: { type: DType.int32 } };
    return this.graph.node('Reshape', { inputs: [x, this.ints(shape)], attributes });
  }

  transpose(x: Output, order: readonly number[], type: DType = DType.float): Output {
    const attributes = { T: { type }, Tperm: { type: DType.int32 } };
    return this.graph.node('Transpose', { inputs: [x, this.ints(order)], attributes });
  }

  /** Cuts a tensor into parts along an axis. */
  split(x: Output, sizes: readonly number[], axis: number): Output[] {
    const attributes = {
      T: { type: DType.float },
      Tlen: { type: DType.int32 },
      num_split: { int: sizes.length },
    };
    const node = this.graph.node('SplitV', { inputs: [x, this.ints(sizes), this.int(axis)], attributes });
    return sizes.map((_, index) => output(node, index));
  }

  /** Takes the first column, [.., n] -> [.., 1]; `lastAxis` is the number of the last axis. */
  firstColumn(x: Output, lastAxis: number): Output {
    return this.first(x, [...new Array(lastAxis).fill(-1), 1]);
  }

  /** Takes the first `sizes` entries of each axis; -1: all. */
  first(x: Output, sizes: readonly number[]): Output {
    const begin = sizes.map(() => 0);
    const attributes = { T: { type: DType.float }, Index: { type: DType.int32 } };
    return this.graph.node('Slice', { inputs: [x, this.ints(begin), this.ints(sizes)], attributes });
  }

  /** Adds `more` entries with this value at the end of each axis. */
  pad(x: Output, more: readonly number[], value = 0): Output {
    const paddings = this.graph.constant(
      DType.int32,
      more.flatMap((count) => [0, count]),
      [more.length, 2],
    );
    const attributes = { T: { type: DType.float }, Tpaddings: { type: DType.int32 } };
    return this.graph.node('PadV2', { inputs: [x, paddings, this.float(value)], attributes });
  }

  concat(parts: readonly Output[], axis: number, type: DType = DType.float): Output {
    const attributes = { N: { int: parts.length }, T: { type }, Tidx: { type: DType.int32 } };
    return this.graph.node('ConcatV2', { inputs: [...parts, this.int(axis)], attributes });
  }

  gather(x: Output, indices: Output, type: DType = DType.float, axis = 0): Output {
    const attributes = { Tparams: { type }, Tindices: { type: DType.int32 }, Taxis: { type: DType.int32 } };
    return this.graph.node('GatherV2', { inputs: [x, indices, this.int(axis)], attributes });
  }

  /** Picks one value of each row [r, n], by a column for each [r]: [r]. */
  pick(x: Output, columns: Output, type: DType = DType.float): Output {
    const attributes = {
      Tparams: { type },
      Tindices: { type: DType.int32 },
      Taxis: { type: DType.int32 },
      batch_dims: { int: 1 },
    };
    const index = this.expand(columns, 1, DType.int32);
    const picked = this.graph.node('GatherV2', { inputs: [x, index, this.int(1)], attributes });
    return this.reshape(picked, [-1], type);
  }

  expand(x: Output, axis: number, type: DType = DType.float): Output {
    const attributes = { T: { type }, Tdim: { type: DType.int32 } };
    return this.graph.node('ExpandDims', { inputs: [x, this.int(axis)], attributes });
  }

  sum = (x: Output, axis: number, keeps = false, type: DType = DType.float) =>
    this.#reduce('Sum', x, axis, keeps, type);
  mean = (x: Output, axis: number, keeps = false) => this.#reduce('Mean', x, axis, keeps, DType.float);
  max = (x: Output, axis: number, keeps = false) => this.#reduce('Max', x, axis, keeps, DType.float);

  any(x: Output, axis: number): Output {
    const attributes = { keep_dims: { bool: false }, Tidx: { type: DType.int32 } };
    return this.graph.node('Any', { inputs: [x, this.int(axis)], attributes });
  }

  /** Index of the greatest value; the least index if there are several. */
  argMax(x: Output, axis: number, type: DType = DType.float): Output {
    const attributes = { T: { type }, Tidx: { type: DType.int32 }, output_type: { type: DType.int32 } };
    return this.graph.node('ArgMax', { inputs: [x, this.int(axis)], attributes });
  }

  /** Columns of the `count` greatest values of each row [r, n], the lesser column first among equals: [r, count]. No value is NaN. */
  topColumns(x: Output, count: number): Output {
    const attributes = { sorted: { bool: true }, T: { type: DType.float } };
    return output(this.graph.node('TopKV2', { inputs: [x, this.int(count)], attributes }), 1);
  }

  /** 1 in the columns that each row names [r, count], 0 in the others: [r, width]. No row names a column twice. */
  marks(columns: Output, width: number): Output {
    const inputs = [columns, this.int(width), this.float(1), this.float(0)];
    const attributes = { axis: { int: 2 }, T: { type: DType.float }, TI: { type: DType.int32 } };
    return this.sum(this.graph.node('OneHot', { inputs, attributes }), 1);
  }

  cumsum(x: Output, axis: number, type: DType): Output {
    const attributes = {
      T: { type },
      Tidx: { type: DType.int32 },
      exclusive: { bool: false },
      reverse: { bool: false },
    };
    return this.graph.node('Cumsum', { inputs: [x, this.int(axis)], attributes });
  }

  /** Combines rows that have the same number; numbers ascend. */
  segment(kind: 'Sum' | 'Max' | 'Mean', x: Output, numbers: Output): Output {
    const attributes = { T: { type: DType.float }, Tindices: { type: DType.int32 } };
    return this.graph.node(`Segment${kind}`, { inputs: [x, numbers], attributes });
  }

  /** A node that runs after all of these. */
  group(after: readonly Output[], name: string): Output {
    const attributes = { T: { type: DType.int32 } };
    return this.graph.node('Identity', { inputs: [this.int(0)], attributes, after }, name);
  }

  /** x, but not before these have been computed. */
  behind(x: Output, after: readonly Output[]): Output {
    return this.graph.node('Identity', { inputs: [x], attributes: { T: { type: DType.float } }, after });
  }

  identity(x: Output, type: DType, name: string, after: readonly Output[] = []): Output {
    return this.graph.node('Identity', { inputs: [x], attributes: { T: { type } }, after }, name);
  }

  #same(op: string, inputs: Output[], type: DType): Output {
    return this.graph.node(op, { inputs, attributes: { T: { type } } });
  }

  #reduce(op: string, x: Output, axis: number, keeps: boolean, type: DType): Output {
    const attributes = { T: { type }, Tidx: { type: DType.int32 }, keep_dims: { bool: keeps } };
    return this.graph.node(op, { inputs: [x, this.int(axis)], attributes });
  }
}
