import { MAX_INT32 } from '../../../base/int32.js';

// Calls of gRPC, good and bad, in the order in which they are made: what is loaded and registered changes on the way. record-grpc.ts asks them of
// a Triton, test/src/server/grpc/triton-goldens.test.ts of this server. Models are those of grpc-models.ts.

/** Files of shared memory that the calls name, with their bytes. */
export const REGIONS = {
  skein_case_inputs: Int32Array.from({ length: 32 }, (_, i) => i),
  skein_case_outputs: new Int32Array(32),
  skein_case_small: new Int32Array(4),
} as const;

/** A call: the name of its method and its request, or the requests of a stream. */
export type GrpcCase = readonly [method: string, request: object | readonly object[]];

const bytesOf = (values: ArrayBufferView) => Buffer.from(values.buffer, values.byteOffset, values.byteLength);
const ints = (...values: number[]) => bytesOf(Int32Array.from(values));
const sixteen = (value: number) => ints(...Array<number>(16).fill(value));
const pair = [
  { name: 'INPUT0', datatype: 'INT32', shape: [1, 16] },
  { name: 'INPUT1', datatype: 'INT32', shape: [1, 16] },
];
const ok = (extra: object = {}) => ({
  model_name: 'add_sub',
  inputs: pair,
  raw_input_contents: [sixteen(2), sixteen(1)],
  ...extra,
});
const typed = (contents: object, datatype = 'INT32', other: object = {}) => ({
  model_name: 'add_sub',
  inputs: [
    { ...pair[0], datatype, contents },
    { ...pair[1], contents: { int_contents: Array<number>(16).fill(1) } },
  ],
  ...other,
});
const sixteenInts = { int_contents: Array.from({ length: 16 }, (_, i) => i) };
const parameters = (given: object) => ok({ parameters: given });
const output = (given: object, name = 'OUTPUT0') => ok({ outputs: [{ name, parameters: given }] });
const region = (name: string, size?: number, offset?: number) => ({
  shared_memory_region: { string_param: name },
  ...(size !== undefined && { shared_memory_byte_size: { int64_param: size } }),
  ...(offset !== undefined && { shared_memory_offset: { int64_param: offset } }),
});
const one = (type: string, datatype: string, contents: object, shape: number[] = [2]) => ({
  model_name: `any_${type}`,
  inputs: [{ name: 'INPUT0', datatype, shape, contents }],
});
const raw = (type: string, datatype: string, bytes: Buffer, shape: number[] = [2]) => ({
  model_name: `any_${type}`,
  inputs: [{ name: 'INPUT0', datatype, shape }],
  raw_input_contents: [bytes],
});
const repeat = (values: number[], extra: object = {}) => ({
  model_name: 'repeat_int32',
  inputs: [{ name: 'IN', datatype: 'INT32', shape: [values.length] }],
  raw_input_contents: [ints(...values)],
  ...extra,
});

const SERVER: GrpcCase[] = [
  ['ServerLive', {}],
  ['ServerReady', {}],
  ['ServerMetadata', {}],
  ['ServerMetadata', Buffer.from('ffff', 'hex')],
  ['ModelReady', { name: 'add_sub' }],
  ['ModelReady', { name: 'add_sub', version: '1' }],
  ['ModelReady', { name: 'add_sub', version: '2' }],
  ['ModelReady', { name: 'add_sub', version: 'x' }],
  ['ModelReady', { name: 'nope' }],
  ['ModelReady', {}],
  ['ModelMetadata', { name: 'add_sub' }],
  ['ModelMetadata', { name: 'add_sub', version: '1' }],
  ['ModelMetadata', { name: 'add_sub', version: '7' }],
  ['ModelMetadata', { name: 'add_sub', version: 'x' }],
  ['ModelMetadata', { name: 'add_sub', version: '-1' }],
  ['ModelMetadata', { name: 'any_bytes' }],
  ['ModelMetadata', { name: 'repeat_int32' }],
  ['ModelMetadata', { name: 'nope' }],
  ['ModelMetadata', {}],
  ['ModelConfig', { name: 'add_sub' }],
  ['ModelConfig', { name: 'add_sub', version: '7' }],
  ['ModelConfig', { name: 'nope' }],
  ['ModelStatistics', { name: 'nope' }],
  ['ModelStatistics', { name: 'add_sub', version: '7' }],
  ['ModelStatistics', { name: 'add_sub', version: 'x' }],
];

const INFER: GrpcCase[] = [
  ['ModelInfer', ok()],
  ['ModelInfer', ok({ id: 'abc' })],
  ['ModelInfer', ok({ model_version: '1' })],
  ['ModelInfer', ok({ model_version: '7' })],
  ['ModelInfer', ok({ model_version: 'x' })],
  ['ModelInfer', ok({ model_name: 'nope' })],
  ['ModelInfer', ok({ model_name: '' })],
  ['ModelInfer', {}],
  ['ModelInfer', { model_name: 'add_sub' }],
  ['ModelInfer', Buffer.from('ffffff', 'hex')],
  ['ModelInfer', Buffer.from('0a02fffe', 'hex')],
  ['ModelInfer', ok({ outputs: [{ name: 'OUTPUT1' }] })],
  ['ModelInfer', ok({ outputs: [{ name: 'OUTPUT1' }, { name: 'OUTPUT0' }] })],
  ['ModelInfer', ok({ outputs: [{ name: 'NOPE' }] })],
  ['ModelInfer', ok({ inputs: [pair[0]], raw_input_contents: [sixteen(2)] })],
  ['ModelInfer', ok({ raw_input_contents: [sixteen(2)] })],
  ['ModelInfer', ok({ raw_input_contents: [sixteen(2), sixteen(1), sixteen(1)] })],
  ['ModelInfer', ok({ raw_input_contents: [] })],
  ['ModelInfer', ok({ raw_input_contents: [ints(1), sixteen(1)] })],
  ['ModelInfer', ok({ raw_input_contents: [Buffer.alloc(0), sixteen(1)] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], datatype: 'FP32' }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], datatype: 'FP9' }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], datatype: '' }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], name: '' }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], shape: [] }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], shape: [-1, 16] }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], shape: [16] }, pair[1]] })],
  [
    'ModelInfer',
    ok({
      inputs: [{ ...pair[0], shape: [9, 16] }, pair[1]],
      raw_input_contents: [Buffer.alloc(9 * 64), sixteen(1)],
    }),
  ],
  ['ModelInfer', ok({ inputs: [pair[0], pair[0]] })],
  [
    'ModelInfer',
    ok({
      inputs: [...pair, { name: 'INPUT2', datatype: 'INT32', shape: [1, 16] }],
      raw_input_contents: [sixteen(2), sixteen(1), sixteen(1)],
    }),
  ],
  ['ModelInfer', repeat([1, 2])],
  [
    'ModelInfer',
    {
      model_name: 'failing',
      inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1] }],
      raw_input_contents: [ints(0)],
    },
  ],
];

const CONTENTS: GrpcCase[] = [
  ['ModelInfer', typed(sixteenInts)],
  ['ModelInfer', typed({ int_contents: [1, 2] })],
  ['ModelInfer', typed({ fp32_contents: Array(16).fill(1) })],
  ['ModelInfer', typed({ ...sixteenInts, uint_contents: [1] })],
  ['ModelInfer', typed({})],
  ['ModelInfer', typed(sixteenInts, 'INT32', { raw_input_contents: [sixteen(1)] })],
  ['ModelInfer', typed(sixteenInts, 'FP32')],
  ['ModelInfer', one('bool', 'BOOL', { bool_contents: [true, false] })],
  ['ModelInfer', one('int8', 'INT8', { int_contents: [-128, 127] })],
  ['ModelInfer', one('int8', 'INT8', { int_contents: [300, -300] })],
  ['ModelInfer', one('int16', 'INT16', { int_contents: [-32768, 32767] })],
  ['ModelInfer', one('int32', 'INT32', { int_contents: [-(2 ** 31), MAX_INT32] })],
  ['ModelInfer', one('int64', 'INT64', { int64_contents: ['-9223372036854775808', '9223372036854775807'] })],
  ['ModelInfer', one('int64', 'INT64', { int_contents: [1, 2] })],
  ['ModelInfer', one('uint8', 'UINT8', { uint_contents: [0, 255] })],
  ['ModelInfer', one('uint8', 'UINT8', { uint_contents: [256, 257] })],
  ['ModelInfer', one('uint16', 'UINT16', { uint_contents: [0, 65535] })],
  ['ModelInfer', one('uint32', 'UINT32', { uint_contents: [0, 2 ** 32 - 1] })],
  ['ModelInfer', one('uint64', 'UINT64', { uint64_contents: ['0', '18446744073709551615'] })],
  ['ModelInfer', one('fp32', 'FP32', { fp32_contents: [1.5, -0.25] })],
  ['ModelInfer', one('fp64', 'FP64', { fp64_contents: [1.5, 1e300] })],
  ['ModelInfer', one('fp16', 'FP16', { fp32_contents: [1, 2] })],
  ['ModelInfer', one('bytes', 'BYTES', { bytes_contents: [Buffer.from('a'), Buffer.from('')] })],
  ['ModelInfer', one('bytes', 'BYTES', { bytes_contents: [Buffer.from('a')] })],
  ['ModelInfer', one('bytes', 'BYTES', { int_contents: [1, 2] })],
  ['ModelInfer', raw('fp16', 'FP16', Buffer.from('003c0040', 'hex'))],
  ['ModelInfer', raw('bytes', 'BYTES', Buffer.from('010000006100000000', 'hex'))],
  ['ModelInfer', raw('bytes', 'BYTES', Buffer.from('0100000061', 'hex'))],
  ['ModelInfer', raw('bytes', 'BYTES', Buffer.from('05000000610000', 'hex'))],
  ['ModelInfer', raw('int64', 'INT64', Buffer.alloc(16))],
];

const PARAMETERS: GrpcCase[] = [
  [
    'ModelInfer',
    parameters({
      a: { string_param: 'x' },
      b: { int64_param: 1 },
      c: { bool_param: true },
      d: { double_param: 1.5 },
    }),
  ],
  ['ModelInfer', parameters({ a: { uint64_param: 1 } })],
  ['ModelInfer', parameters({ a: {} })],
  ['ModelInfer', parameters({ sequence_id: { int64_param: 5 }, sequence_start: { bool_param: true } })],
  ['ModelInfer', parameters({ sequence_id: { string_param: 'x' } })],
  ['ModelInfer', parameters({ sequence_id: { uint64_param: 5 } })],
  ['ModelInfer', parameters({ sequence_id: { bool_param: true } })],
  ['ModelInfer', parameters({ sequence_start: { int64_param: 1 } })],
  ['ModelInfer', parameters({ sequence_end: { string_param: '' } })],
  ['ModelInfer', parameters({ priority: { int64_param: 1 } })],
  ['ModelInfer', parameters({ priority: { uint64_param: 1 } })],
  ['ModelInfer', parameters({ priority: { int64_param: -1 } })],
  ['ModelInfer', parameters({ priority: { string_param: '1' } })],
  ['ModelInfer', parameters({ timeout: { int64_param: 1000000 } })],
  ['ModelInfer', parameters({ timeout: { uint64_param: 1000000 } })],
  ['ModelInfer', parameters({ triton_nope: { bool_param: true } })],
  ['ModelInfer', parameters({ triton_enable_empty_final_response: { bool_param: true } })],
  ['ModelInfer', parameters({ triton_enable_empty_final_response: { int64_param: 1 } })],
  ['ModelInfer', output({ classification: { int64_param: 2 } })],
  ['ModelInfer', output({ classification: { int64_param: 0 } })],
  ['ModelInfer', output({ classification: { int64_param: -1 } })],
  ['ModelInfer', output({ classification: { uint64_param: 2 } })],
  ['ModelInfer', output({ classification: { string_param: '2' } })],
  ['ModelInfer', output({ binary_data: { bool_param: true } })],
  [
    'ModelInfer',
    {
      ...raw('bool', 'BOOL', Buffer.from([1, 0])),
      outputs: [{ name: 'OUTPUT0', parameters: { classification: { int64_param: 1 } } }],
    },
  ],
  [
    'ModelInfer',
    {
      model_name: 'labelled',
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 4] }],
      raw_input_contents: [bytesOf(Float32Array.of(1, 3, 2, 0))],
      outputs: [{ name: 'OUTPUT0', parameters: { classification: { int64_param: 2 } } }],
    },
  ],
];

const STREAM: GrpcCase[] = [
  ['ModelStreamInfer', []],
  ['ModelStreamInfer', [ok({ id: '1' })]],
  ['ModelStreamInfer', [ok({ id: '1' }), ok({ id: '2' }), ok({ id: '3' })]],
  ['ModelStreamInfer', [repeat([1, 2, 3], { id: 'r' })]],
  [
    'ModelStreamInfer',
    [repeat([1], { id: 'r', parameters: { triton_enable_empty_final_response: { bool_param: true } } })],
  ],
  [
    'ModelStreamInfer',
    [ok({ id: 'f', parameters: { triton_enable_empty_final_response: { bool_param: true } } })],
  ],
  [
    'ModelStreamInfer',
    [repeat([], { id: 'r', parameters: { triton_enable_empty_final_response: { bool_param: true } } })],
  ],
  ['ModelStreamInfer', [repeat([1, -1, 3], { id: 'r' })]],
  ['ModelStreamInfer', [ok({ model_name: 'nope', id: '1' }), ok({ id: '2' })]],
  ['ModelStreamInfer', [ok({ model_version: 'x', id: '1' })]],
  ['ModelStreamInfer', [ok({ raw_input_contents: [], id: '1' }), ok({ id: '2' })]],
  [
    'ModelStreamInfer',
    [
      {
        model_name: 'failing',
        id: '9',
        inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1] }],
        raw_input_contents: [ints(0)],
      },
      ok({ id: '2' }),
    ],
  ],
  ['ModelStreamInfer', [Buffer.from('ffffff', 'hex'), ok({ id: '2' })]],
];

const MEMORY: GrpcCase[] = [
  ['SystemSharedMemoryStatus', {}],
  ['SystemSharedMemoryStatus', { name: 'nope' }],
  ['SystemSharedMemoryUnregister', {}],
  ['SystemSharedMemoryUnregister', { name: 'nope' }],
  ['SystemSharedMemoryRegister', {}],
  ['SystemSharedMemoryRegister', { name: 'in' }],
  ['SystemSharedMemoryRegister', { name: 'in', key: '/' }],
  ['SystemSharedMemoryRegister', { name: 'in', key: '/skein_case_nope', byte_size: 4 }],
  ['SystemSharedMemoryRegister', { name: 'in', key: '/skein_case_inputs', byte_size: 1000000 }],
  ['SystemSharedMemoryRegister', { name: 'in', key: '/skein_case_inputs', byte_size: 128 }],
  ['SystemSharedMemoryRegister', { name: 'in', key: '/skein_case_inputs', byte_size: 128 }],
  ['SystemSharedMemoryRegister', { name: 'out', key: 'skein_case_outputs', byte_size: 128 }],
  ['SystemSharedMemoryRegister', { name: 'small', key: '/skein_case_small', byte_size: 16 }],
  ['SystemSharedMemoryStatus', {}],
  ['SystemSharedMemoryStatus', { name: 'in' }],
  [
    'ModelInfer',
    ok({
      inputs: [
        { ...pair[0], parameters: region('in', 64) },
        { ...pair[1], parameters: region('in', 64, 64) },
      ],
      raw_input_contents: [],
    }),
  ],
  [
    'ModelInfer',
    ok({ inputs: [{ ...pair[0], parameters: region('in', 64) }, pair[1]], raw_input_contents: [sixteen(1)] }),
  ],
  [
    'ModelInfer',
    ok({
      outputs: [
        { name: 'OUTPUT0', parameters: region('out', 64) },
        { name: 'OUTPUT1', parameters: region('out', 64, 64) },
      ],
    }),
  ],
  ['ModelInfer', ok({ outputs: [{ name: 'OUTPUT0', parameters: region('small', 16) }] })],
  ['ModelInfer', ok({ outputs: [{ name: 'OUTPUT0', parameters: region('out', 64, 128) }] })],
  ['ModelInfer', ok({ outputs: [{ name: 'OUTPUT0', parameters: region('out', 64, 100) }] })],
  [
    'ModelInfer',
    ok({
      outputs: [
        { name: 'OUTPUT0', parameters: { ...region('out', 64), classification: { int64_param: 1 } } },
      ],
    }),
  ],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], parameters: region('nope', 64) }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], parameters: region('in', 64, 100) }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], parameters: region('in', 32) }, pair[1]] })],
  ['ModelInfer', ok({ inputs: [{ ...pair[0], parameters: region('in') }, pair[1]] })],
  [
    'ModelInfer',
    ok({
      inputs: [{ ...pair[0], contents: sixteenInts, parameters: region('in', 64) }, pair[1]],
      raw_input_contents: [],
    }),
  ],
  [
    'ModelInfer',
    ok({ inputs: [{ ...pair[0], parameters: { shared_memory_region: { int64_param: 1 } } }, pair[1]] }),
  ],
  [
    'ModelInfer',
    ok({
      inputs: [
        { ...pair[0], parameters: { ...region('in', 64), shared_memory_offset: { string_param: '' } } },
        pair[1],
      ],
    }),
  ],
  [
    'ModelInfer',
    ok({ inputs: [{ ...pair[0], parameters: { shared_memory_offset: { int64_param: 1 } } }, pair[1]] }),
  ],
  [
    'ModelInfer',
    ok({ inputs: [{ ...pair[0], parameters: { shared_memory_byte_size: { int64_param: 1 } } }, pair[1]] }),
  ],
  [
    'ModelStreamInfer',
    [
      ok({
        id: '1',
        inputs: [
          { ...pair[0], parameters: region('in', 64) },
          { ...pair[1], parameters: region('in', 64, 64) },
        ],
        raw_input_contents: [],
      }),
    ],
  ],
  ['SystemSharedMemoryUnregister', { name: 'in' }],
  ['SystemSharedMemoryUnregister', {}],
  ['SystemSharedMemoryStatus', {}],
  ['CudaSharedMemoryStatus', {}],
  ['CudaSharedMemoryStatus', { name: 'nope' }],
  ['CudaSharedMemoryRegister', { name: 'in', raw_handle: Buffer.alloc(64), byte_size: 4 }],
  ['CudaSharedMemoryUnregister', {}],
  ['CudaSharedMemoryUnregister', { name: 'nope' }],
];

const REPOSITORY: GrpcCase[] = [
  ['TraceSetting', {}],
  ['TraceSetting', { model_name: 'add_sub' }],
  ['TraceSetting', { model_name: 'nope' }],
  ['TraceSetting', { settings: { trace_rate: { value: ['10'] } } }],
  ['TraceSetting', { settings: { trace_rate: { value: [] } } }],
  ['TraceSetting', { settings: { nope: { value: ['1'] } } }],
  ['LogSettings', {}],
  ['LogSettings', { settings: { log_info: { bool_param: true } } }],
  ['LogSettings', { settings: { log_info: { string_param: 'x' } } }],
  ['LogSettings', { settings: { log_file: { string_param: 'x' } } }],
  ['LogSettings', { settings: { nope: { bool_param: true } } }],
  ['RepositoryIndex', {}],
  ['RepositoryIndex', { ready: true }],
  ['RepositoryIndex', { repository_name: 'x' }],
  ['RepositoryModelLoad', { model_name: 'nope' }],
  ['RepositoryModelLoad', {}],
  ['RepositoryModelLoad', { model_name: 'add_sub', repository_name: 'x' }],
  ['RepositoryModelLoad', { model_name: 'add_sub', parameters: { config: { bool_param: true } } }],
  [
    'RepositoryModelLoad',
    { model_name: 'add_sub', parameters: { config: { string_param: '{"max_batch_size":' } } },
  ],
  [
    'RepositoryModelLoad',
    { model_name: 'add_sub', parameters: { 'file:1/model.py': { string_param: 'x' } } },
  ],
  [
    'RepositoryModelLoad',
    { model_name: 'add_sub', parameters: { 'file:1/model.py': { bytes_param: Buffer.from('x') } } },
  ],
  ['RepositoryModelUnload', { model_name: 'nope' }],
  ['RepositoryModelUnload', { model_name: 'add_sub', repository_name: 'x' }],
  [
    'RepositoryModelUnload',
    { model_name: 'add_sub', parameters: { unload_dependents: { string_param: 'x' } } },
  ],
  [
    'RepositoryModelUnload',
    { model_name: 'add_sub', parameters: { unload_dependents: { bool_param: true } } },
  ],
  ['ModelReady', { name: 'add_sub' }],
  ['ModelInfer', ok()],
  ['ModelMetadata', { name: 'add_sub' }],
  ['ModelConfig', { name: 'add_sub' }],
  ['RepositoryModelLoad', { model_name: 'add_sub' }],
  ['ModelReady', { name: 'add_sub' }],
  ['ModelInfer', ok()],
  ['Check', {}],
  ['Check', { service: 'inference.GRPCInferenceService' }],
  ['Check', { service: 'nope' }],
];

export const grpcCases: readonly GrpcCase[] = [
  ...SERVER,
  ...INFER,
  ...CONTENTS,
  ...PARAMETERS,
  ...STREAM,
  ...MEMORY,
  ...REPOSITORY,
];
