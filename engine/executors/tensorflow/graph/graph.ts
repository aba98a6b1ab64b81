import { WireWriter } from './wire.js';

/** TensorFlow's numbers for its types. */
export const DType = { float: 1, double: 2, int32: 3, bool: 10, bfloat16: 14, half: 19 } as const;
export type DType = (typeof DType)[keyof typeof DType];

/** An output of a node: 'name' is the node's first, 'name:1' its second. */
export type Output = string;

export type Attribute =
  | { type: DType }
  | { types: DType[] }
  | { int: number }
  | { float: number }
  | { bool: boolean }
  | { text: string }
  /** Sizes of the axes; -1: any. */
  | { shape: readonly number[] }
  | { tensor: { dtype: DType; shape: readonly number[]; bytes: Uint8Array } };

export interface NodeOptions {
  inputs?: readonly Output[];
  attributes?: Readonly<Record<string, Attribute>>;
  /** Nodes that run before this one, in addition to those of the inputs. */
  after?: readonly Output[];
}

/** Version number of TensorFlow 2.9's ops, the oldest library that is accepted. */
const PRODUCER = 1087;

/** A TensorFlow graph, written node by node as the SavedModel that TensorFlow's library loads. */
export class Graph {
  readonly #nodes: Uint8Array[] = [];
  readonly #constants = new Map<string, Output>();
  #scope = '';

  /** Makes the names of the nodes that `write` creates begin with `scope`. */
  within<T>(scope: string, write: () => T): T {
    const outer = this.#scope;
    this.#scope = `${outer}${scope}/`;
    try {
      return write();
    } finally {
      this.#scope = outer;
    }
  }

  /** Adds a node and returns its first output. Its other outputs are `output(node, i)`. */
  node(op: string, { inputs = [], attributes = {}, after = [] }: NodeOptions, name?: string): Output {
    const full = name ?? `${this.#scope}${op}_${this.#nodes.length}`;
    const node = new WireWriter().text(1, full).text(2, op);
    for (const input of inputs) node.text(3, input);
    for (const before of after) node.text(3, `^${before.split(':')[0]}`);
    for (const [key, value] of Object.entries(attributes)) {
      node.message(5, (entry) => entry.text(1, key).message(2, (inner) => writeAttribute(inner, value)));
    }
    this.#nodes.push(node.finish());
    return full;
  }

  placeholder(name: string, dtype: DType, shape: readonly number[]): Output {
    return this.node('Placeholder', { attributes: { dtype: { type: dtype }, shape: { shape } } }, name);
  }

  /** Returns a constant; equal constants are one node. */
  constant(dtype: DType, values: readonly number[], shape: readonly number[]): Output {
    const key = `${dtype}|${values}|${shape}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const Typed = { [DType.float]: Float32Array, [DType.double]: Float64Array, [DType.int32]: Int32Array }[
      dtype as 1 | 2 | 3
    ];
    const bytes = new Uint8Array(Typed.from(values).buffer);
    const attributes = { dtype: { type: dtype }, value: { tensor: { dtype, shape, bytes } } };
    const output = this.node('Const', { attributes }, `constant_${this.#constants.size}`);
    this.#constants.set(key, output);
    return output;
  }

  /** Encodes the graph as a SavedModel with the tag `serve`. */
  toSavedModel(): Uint8Array {
    const model = new WireWriter().integer(1, 1);
    model.message(2, (meta) => {
      meta.message(1, (info) => info.text(4, 'serve'));
      meta.message(2, (graph) => {
        for (const node of this.#nodes) graph.bytes(1, node);
        graph.message(4, (versions) => versions.integer(1, PRODUCER));
      });
    });
    return model.finish();
  }
}

export const output = (node: Output, index: number): Output => (index === 0 ? node : `${node}:${index}`);

function writeAttribute(attribute: WireWriter, value: Attribute): void {
  if ('type' in value) attribute.integer(6, value.type);
  else if ('types' in value) {
    attribute.message(1, (list) => {
      for (const type of value.types) list.integer(6, type);
    });
  } else if ('int' in value) attribute.integer(3, value.int);
  else if ('float' in value) attribute.float(4, value.float);
  else if ('bool' in value) attribute.integer(5, value.bool ? 1 : 0);
  else if ('text' in value) attribute.text(2, value.text);
  else if ('shape' in value) attribute.message(7, (shape) => writeShape(shape, value.shape));
  else {
    const { dtype, shape, bytes } = value.tensor;
    attribute.message(8, (tensor) => {
      tensor
        .integer(1, dtype)
        .message(2, (inner) => writeShape(inner, shape))
        .bytes(4, bytes);
    });
  }
}

function writeShape(writer: WireWriter, shape: readonly number[]): void {
  for (const size of shape) writer.message(2, (dimension) => dimension.integer(1, size));
}
