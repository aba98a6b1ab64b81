import protobuf from 'protobufjs';

/** The messages of an ONNX file as far as these models need them. Source: onnx.proto, https://github.com/onnx/onnx. */
const SCHEMA = `
syntax = "proto3";
message ModelProto { int64 ir_version = 1; repeated OperatorSetIdProto opset_import = 8; GraphProto graph = 7; }
message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message GraphProto { repeated NodeProto node = 1; string name = 2; repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12; }
message NodeProto { repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated AttributeProto attribute = 5; string domain = 7; }
message AttributeProto { string name = 1; float f = 2; int64 i = 3; bytes s = 4; repeated float floats = 7; repeated int64 ints = 8; repeated bytes strings = 9; int32 type = 20; }
message ValueInfoProto { string name = 1; TypeProto type = 2; }
message TypeProto {
  message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; }
  message Sequence { TypeProto elem_type = 1; }
  message Map { int32 key_type = 1; TypeProto value_type = 2; }
  message Optional { TypeProto elem_type = 1; }
  oneof value { Tensor tensor_type = 1; Sequence sequence_type = 4; Map map_type = 5; Optional optional_type = 9; }
}
message TensorShapeProto { repeated Dimension dim = 1; message Dimension { int64 dim_value = 1; string dim_param = 2; } }
`;

/** Element types by their numbers in ONNX. */
export const ONNX_TYPES = {
  FP32: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  BYTES: 8,
  BOOL: 9,
  FP16: 10,
  FP64: 11,
  UINT32: 12,
  UINT64: 13,
} as const;

export interface OnnxTensorInfo {
  name: string;
  /** By its name here, or by its number in ONNX. */
  type: keyof typeof ONNX_TYPES | number;
  /** A text is a free size; null: the file says nothing of dimensions. */
  dims: readonly (number | string)[] | null;
}

/** An input or output that is no tensor. */
export interface OnnxOtherInfo {
  name: string;
  /** A TypeProto. */
  proto: object;
}

/** An attribute that is a whole number. Source: AttributeProto.AttributeType. */
const INT_ATTRIBUTE = 2;

/** The bytes of a model of one operation a node. */
export function onnxModel(
  inputs: readonly (OnnxTensorInfo | OnnxOtherInfo)[],
  outputs: readonly (OnnxTensorInfo | OnnxOtherInfo)[],
  nodes: readonly {
    op: string;
    input: string[];
    output: string[];
    domain?: string;
    /** Each an AttributeProto. */
    attribute?: object[];
    /** Those that are whole numbers, by name. */
    attributes?: Readonly<Record<string, number>>;
  }[],
  opset = 13,
): Uint8Array {
  const type = protobuf.parse(SCHEMA, { keepCase: true }).root.lookupType('ModelProto');
  const info = (value: OnnxTensorInfo | OnnxOtherInfo) => ({
    name: value.name,
    type: 'proto' in value ? value.proto : typeOf(value),
  });
  const node = nodes.map(({ op, attribute = [], attributes = {}, ...one }, i) => ({
    op_type: op,
    name: `n${i}`,
    ...one,
    attribute: [
      ...attribute,
      ...Object.entries(attributes).map(([name, value]) => ({ name, i: value, type: INT_ATTRIBUTE })),
    ],
  }));
  const graph = { name: 'g', node, input: inputs.map(info), output: outputs.map(info) };
  const domains = new Set(nodes.map(({ domain = '' }) => domain));
  const opset_import = Array.from(domains.add(''), (domain) => ({
    domain,
    version: domain === '' ? opset : 3,
  }));
  return type.encode(type.fromObject({ ir_version: 8, opset_import, graph })).finish();
}

function typeOf({ type, dims }: OnnxTensorInfo): object {
  const elem_type = typeof type === 'number' ? type : ONNX_TYPES[type];
  const sizeOf = (size: number | string) =>
    typeof size === 'string' ? { dim_param: size } : { dim_value: size };
  const shape = dims === null ? {} : { shape: { dim: dims.map(sizeOf) } };
  return { tensor_type: { elem_type, ...shape } };
}

/** OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, of rows of 16. */
export function addSubModel(): Uint8Array {
  const tensor = (name: string): OnnxTensorInfo => ({ name, type: 'INT32', dims: ['batch', 16] });
  return onnxModel(
    [tensor('INPUT0'), tensor('INPUT1')],
    [tensor('OUTPUT0'), tensor('OUTPUT1')],
    [
      { op: 'Add', input: ['INPUT0', 'INPUT1'], output: ['OUTPUT0'] },
      { op: 'Sub', input: ['INPUT0', 'INPUT1'], output: ['OUTPUT1'] },
    ],
  );
}
