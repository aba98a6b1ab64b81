// Requests for tensors of every type, in JSON and binary, good and bad, and the models that they ask.
// record-typed.mjs asks them of a Triton, test/src/server/kserve/typed-goldens.test.ts of this server.

import { deflateSync, gzipSync } from 'node:zlib';

const TYPES = [
  'BOOL',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
];
const ofConfig = (type) => (type === 'BYTES' ? 'TYPE_STRING' : `TYPE_${type}`);

/**
 * Models with INPUT0 and OUTPUT0, which answer what they are given.
 * @type {{ name: string, type: string, dims: number[], batch?: number, labels?: string[] }[]}
 */
export const MODELS = [
  ...TYPES.map((type) => ({ name: `any_${type.toLowerCase()}`, type: ofConfig(type), dims: [-1] })),
  { name: 'labelled', type: 'TYPE_FP32', dims: [4], batch: 4, labels: ['ant', 'bee', 'cat'] },
  { name: 'square', type: 'TYPE_INT32', dims: [2, 3] },
  { name: 'two_open', type: 'TYPE_INT32', dims: [-1, -1] },
  { name: 'one_text', type: 'TYPE_STRING', dims: [1] },
  { name: 'failing', type: 'TYPE_INT32', dims: [-1] },
];

const bytes = (...values) => Buffer.from(values);
const text = (value) => {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(Buffer.byteLength(value));
  return Buffer.concat([head, Buffer.from(value)]);
};
const floats = (...values) => Buffer.from(new Float32Array(values).buffer);

/** A request of JSON; `data` is text, so that numbers are as they are written here. */
const json = (model, datatype, shape, data, more = '') => ({
  path: `/v2/models/${model}/infer`,
  body: Buffer.from(
    `{"inputs":[{"name":"INPUT0","shape":${JSON.stringify(shape)},"datatype":"${datatype}","data":${data}}]${more}}`,
  ),
  headers: {},
});

/** A request whose tensor follows the JSON. @param size what `binary_data_size` says */
const binary = (model, datatype, shape, data, { size = data.length, more = '', headers = {} } = {}) => {
  const head = Buffer.from(
    `{"inputs":[{"name":"INPUT0","shape":${JSON.stringify(shape)},"datatype":"${datatype}","parameters":{"binary_data_size":${JSON.stringify(size)}}}]${more}}`,
  );
  return {
    path: `/v2/models/${model}/infer`,
    body: Buffer.concat([head, data]),
    headers: { 'Inference-Header-Content-Length': String(head.length), ...headers },
  };
};
const raw = (model, body, length = '0') => ({
  path: `/v2/models/${model}/infer`,
  body,
  headers: { 'Inference-Header-Content-Length': length },
});
const asked = (parameters, ...others) =>
  `,"outputs":${JSON.stringify([{ name: 'OUTPUT0', parameters }, ...others])}`;
const classes = (count) => asked({ classification: count });

/**
 * A request whose body is in a coding, with a raw tensor after its JSON: the header gives the length of what
 * was compressed.
 */
const compressed = (coding, compress) => {
  const { path, body, headers } = binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0));
  return { path, body: compress(body), headers: { ...headers, 'Content-Encoding': coding } };
};

/** { path, body, headers } of each. */
export const typedCases = [
  // Whole numbers in JSON, up to the ends of their types and beyond.
  json('any_int8', 'INT8', [3], '[-128,0,127]'),
  json('any_int8', 'INT8', [1], '[128]'),
  json('any_uint8', 'UINT8', [2], '[0,255]'),
  json('any_uint8', 'UINT8', [1], '[-1]'),
  json('any_int16', 'INT16', [2], '[-32768,32767]'),
  json('any_uint16', 'UINT16', [2], '[0,65535]'),
  json('any_uint32', 'UINT32', [2], '[0,4294967295]'),
  json('any_uint32', 'UINT32', [1], '[4294967296]'),
  json('any_int64', 'INT64', [3], '[-9223372036854775808,9007199254740993,9223372036854775807]'),
  json('any_int64', 'INT64', [1], '[9223372036854775808]'),
  json('any_uint64', 'UINT64', [2], '[0,18446744073709551615]'),
  json('any_uint64', 'UINT64', [1], '[18446744073709551616]'),
  json('any_int32', 'INT32', [1], '[1.0]'),
  json('any_int32', 'INT32', [1], '[1e3]'),
  json('any_int32', 'INT32', [1], '[true]'),
  json('any_int32', 'INT32', [1], '[null]'),
  json('any_int32', 'INT32', [1], '["1"]'),
  json('any_int32', 'INT32', [1], '[{}]'),
  // Truth values.
  json('any_bool', 'BOOL', [2], '[true,false]'),
  json('any_bool', 'BOOL', [2], '[1,0]'),
  json('any_bool', 'BOOL', [1], '[2]'),
  // Floats.
  json('any_fp32', 'FP32', [6], '[0,-0.0,1.5,0.1,1e-45,3.4028235e38]'),
  json('any_fp32', 'FP32', [3], '[1e15,1e16,123456789]'),
  json('any_fp32', 'FP32', [3], '[1e20,1e21,1e22]'),
  json('any_fp64', 'FP64', [5], '[0.1,1e300,5e-324,1e21,-2]'),
  json('any_fp64', 'FP64', [1], '[9007199254740993]'),
  json('any_fp32', 'FP32', [1], '[NaN]'),
  json('any_fp32', 'FP32', [2], '[Infinity,-Infinity]'),
  json('any_fp32', 'FP32', [1], '[1e400]'),
  json('any_fp32', 'FP32', [1], '[true]'),
  json('any_fp16', 'FP16', [1], '[1]'),
  binary('any_fp16', 'FP16', [2], bytes(0x00, 0x3c, 0x00, 0xc0)),
  binary('any_fp16', 'FP16', [2], bytes(0x00, 0x3c, 0x00, 0xc0), { more: asked({ binary_data: true }) }),
  json('any_fp32', 'BF16', [1], '[1]'),
  // Texts.
  json('any_bytes', 'BYTES', [3], '["a","","\\u00e9\\ud83d\\ude00 \\"\\n"]'),
  json('any_bytes', 'BYTES', [1], '[5]'),
  json('any_bytes', 'BYTES', [1], '[null]'),
  json('any_bytes', 'BYTES', [2], '[["a"],["b"]]'),
  binary('any_bytes', 'BYTES', [2], Buffer.concat([text('ab'), text('')])),
  binary('any_bytes', 'BYTES', [2], Buffer.concat([text('ab'), text('')]), {
    more: asked({ binary_data: true }),
  }),
  binary('any_bytes', 'BYTES', [1], bytes(5, 0, 0, 0, 97)),
  binary('any_bytes', 'BYTES', [1], bytes(5, 0)),
  binary('any_bytes', 'BYTES', [3], text('a')),
  binary('any_bytes', 'BYTES', [1], Buffer.concat([text('a'), text('b')])),
  binary('any_bytes', 'BYTES', [1], bytes(255, 255, 255, 255)),
  // Shapes.
  json('any_int32', 'INT32', [0], '[]'),
  json('any_int32', 'INT32', [], '[1]'),
  json('any_int32', 'INT32', [1], '1'),
  json('any_int32', 'INT32', [1], '[]'),
  json('any_int32', 'INT32', [1], 'null'),
  json('any_int32', 'INT32', [3], '[1,2]'),
  json('any_int32', 'INT32', [2], '[1,2,3]'),
  raw(
    'any_int32',
    Buffer.from('{"inputs":[{"name":"INPUT0","shape":[9223372036854775807],"datatype":"INT32","data":[1]}]}'),
    '86',
  ),
  raw(
    'any_int32',
    Buffer.from('{"inputs":[{"name":"INPUT0","shape":[9223372036854775808],"datatype":"INT32","data":[1]}]}'),
    '86',
  ),
  json('any_int32', 'INT32', [4611686018427388000, 4], '[1]'),
  json('square', 'INT32', [2, 3], '[[1,2,3],[4,5,6]]'),
  json('square', 'INT32', [2, 3], '[[1,2],[3,4],[5,6]]'),
  json('square', 'INT32', [2, 3], '[[[1,2,3]],[4,5,6]]'),
  json('square', 'INT32', [3, 2], '[1,2,3,4,5,6]'),
  json('square', 'INT32', [6], '[1,2,3,4,5,6]'),
  json('square', 'INT32', [2, 3], '[[1,2,3],[4,5]]'),
  // Raw tensors and what their headers say.
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0)),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), {
    more: ',"parameters":{"binary_data_output":true}',
  }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), {
    more: `${asked({ binary_data: false })},"parameters":{"binary_data_output":true}`,
  }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0)),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0)),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), { size: 4 }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), { size: 12 }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), { size: '8' }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), { size: -8 }),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), { size: 8.5 }),
  binary('any_int32', 'INT32', [0], bytes()),
  binary('any_int32', 'INT32', [2], bytes(1, 0, 0, 0, 2, 0, 0, 0), {
    headers: { 'Inference-Header-Content-Length': '1' },
  }),
  binary('any_bool', 'BOOL', [2], bytes(1, 0)),
  binary('any_fp32', 'FP32', [3], floats(Number.NaN, Number.POSITIVE_INFINITY, -1)),
  // A body that is one tensor and nothing else.
  raw('any_int32', bytes(1, 0, 0, 0, 2, 0, 0, 0)),
  raw('any_int32', bytes(1, 0, 0, 0, 2)),
  raw('any_int32', bytes()),
  raw('any_bytes', Buffer.from('hello')),
  raw('one_text', Buffer.from('hello')),
  raw('square', Buffer.from(new Int32Array([1, 2, 3, 4, 5, 6]).buffer)),
  raw('square', bytes(1, 0, 0, 0)),
  raw('two_open', bytes(1, 0, 0, 0)),
  raw('labelled', floats(1, 2, 3, 4)),
  raw('any_int32', bytes(1, 0, 0, 0), 'many'),
  raw('any_int32', bytes(1, 0, 0, 0), ''),
  // Classes.
  json('labelled', 'FP32', [2, 4], '[0.5,2,-1,2,4,3,2,1]', classes(1)),
  json('labelled', 'FP32', [2, 4], '[0.5,2,-1,2,4,3,2,1]', classes(3)),
  json('labelled', 'FP32', [1, 4], '[1,2,3,4]', classes(100)),
  json('labelled', 'FP32', [1, 4], '[1,2,3,4]', asked({ classification: 2, binary_data: true })),
  json('labelled', 'FP32', [1, 4], '[1e30,-1e-30,1e21,0]', classes(4)),
  binary(
    'labelled',
    'FP32',
    [1, 4],
    floats(Number.NaN, 1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
    { more: classes(4) },
  ),
  json('labelled', 'FP32', [1, 4], '[1,2,3,4]', asked({ classification: -1 })),
  json('labelled', 'FP32', [1, 4], '[1,2,3,4]', asked({ classification: 1.5 })),
  json('labelled', 'FP32', [1, 4], '[1,2,3,4]', asked({ classification: 'x' })),
  json('any_int64', 'INT64', [3], '[1,9223372036854775807,-1]', classes(2)),
  json('any_uint64', 'UINT64', [2], '[1,18446744073709551615]', classes(2)),
  json('any_fp64', 'FP64', [2], '[0.1,1e300]', classes(2)),
  json('any_bool', 'BOOL', [2], '[true,false]', classes(1)),
  json('any_bytes', 'BYTES', [1], '["a"]', classes(1)),
  binary('any_fp16', 'FP16', [2], bytes(0x00, 0x3c, 0x00, 0xc0), { more: classes(1) }),
  json('any_int32', 'INT32', [0], '[]', classes(1)),
  // What is asked for.
  json('any_int32', 'INT32', [1], '[1]', asked({}, { name: 'OUTPUT0' })),
  json('any_int32', 'INT32', [1], '[1]', asked({ binary_data: true }, { name: 'OUTPUT0' })),
  json('any_int32', 'INT32', [1], '[1]', ',"outputs":{}'),
  json('any_int32', 'INT32', [1], '[1]', ',"outputs":null'),
  json('any_int32', 'INT32', [1], '[1]', ',"outputs":[5]'),
  json('any_int32', 'INT32', [1], '[1]', ',"outputs":[{}]'),
  json('any_int32', 'INT32', [1], '[1]', asked({ binary_data: 'yes' })),
  json('any_int32', 'INT32', [1], '[1]', asked({ unknown: 1 })),
  json('any_int32', 'INT32', [1], '[1]', ',"unknown":1'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":null'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":{"timeout":-1}'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":{"timeout":"x"}'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":{"priority":18446744073709551615}'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":{"sequence_id":"a","sequence_start":1}'),
  json('any_int32', 'INT32', [1], '[1]', ',"parameters":{"sequence_id":1.5}'),
  json('any_int32', 'INT32', [1], '[1]', ',"id":"\\u00e9\\""'),
  json('any_int32', 'INT32', [1], '[1]', ',"id":null'),
  json('failing', 'INT32', [1], '[1]'),
  // What cannot be read.
  raw('any_int32', Buffer.from('null'), '4'),
  raw('any_int32', Buffer.from('{"inputs":[5]}'), '14'),
  raw('any_int32', Buffer.from('{"inputs":[null]}'), '17'),
  raw('any_int32', Buffer.from('{"inputs":[[]]}'), '15'),
  json('any_int32', 'INT32', [1], '[1] '),
  json('any_int32', 'INT32', [1], '[1,]'),
  json('any_int32', 'INT32', [1], '[01]'),
  json('any_int32', 'INT32', [1], '[1]]'),
  // Compressed requests.
  compressed('gzip', gzipSync),
  compressed('deflate', deflateSync),
  compressed('br', (body) => body),
  compressed('identity', (body) => body),
  compressed('gzip', (body) => gzipSync(body).subarray(0, 40)),
];

/** What a request is called: its bytes, but for those of compressors, which differ from version to version. */
export function titleOf({ path, body, headers }) {
  return `${path} ${headers['Content-Encoding'] ?? body.toString('latin1')}`;
}
