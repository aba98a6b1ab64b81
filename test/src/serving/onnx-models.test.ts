import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import { postJson } from '../../support/post-json.js';
import { startServer } from '../support/skein-process.js';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';
import { addSubModel, ONNX_TYPES, onnxModel } from './support/onnx-writer.js';

const models = new ModuleModels();

function write(name: string, model: Uint8Array | string, config = ''): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/model.onnx'), model);
  if (config !== '') writeFileSync(join(models.folder, name, 'config.yaml'), config);
}

/** For models that are small and trusted: a test has many. */
const THREAD = 'parameters: {instance_kind: thread}\n';

const identity = (type: keyof typeof ONNX_TYPES, dims: readonly (number | string)[] | null) =>
  onnxModel(
    [{ name: 'X', type, dims }],
    [{ name: 'Y', type, dims }],
    [{ op: 'Identity', input: ['X'], output: ['Y'] }],
  );

/** A sequence of maps from a class to its probability, which skl2onnx makes. */
const ZIP_MAP = {
  sequence_type: {
    elem_type: { map_type: { key_type: 8, value_type: { tensor_type: { elem_type: 1, shape: {} } } } },
  },
};
const names = {
  name: 'classlabels_strings',
  strings: ['cat', 'dog'].map((text) => Buffer.from(text)),
  type: 8,
};
const CLASSIFIER = [
  {
    op: 'LinearClassifier',
    domain: 'ai.onnx.ml',
    input: ['X'],
    output: ['L', 'P'],
    attribute: [
      names,
      { name: 'coefficients', floats: [1, -1, -1, 1], type: 6 },
      { name: 'intercepts', floats: [0, 0], type: 6 },
      { name: 'post_transform', s: Buffer.from('SOFTMAX'), type: 3 },
    ],
  },
  { op: 'ZipMap', domain: 'ai.onnx.ml', input: ['P'], output: ['Z'], attribute: [names] },
];

beforeAll(async () => {
  write(
    'add_sub',
    addSubModel(),
    'platform: onnxruntime_onnx\nmax_batch_size: 8\ndynamic_batching: {preferred_batch_size: [4], max_queue_delay_microseconds: 1000000}\n',
  );
  write('whole', identity('FP32', [2, 3]), THREAD);
  for (const type of Object.keys(ONNX_TYPES)) write(`of_${type}`, identity(type as 'FP32', ['n', 2]), THREAD);
  write(
    'topk',
    onnxModel(
      [
        { name: 'X', type: 'FP32', dims: ['n', 5] },
        { name: 'K', type: 'INT64', dims: [1] },
      ],
      [
        { name: 'V', type: 'FP32', dims: ['n', 'k'] },
        { name: 'I', type: 'INT64', dims: ['n', 'k'] },
      ],
      [{ op: 'TopK', input: ['X', 'K'], output: ['V', 'I'] }],
    ),
  );
  write(
    'any_rank',
    onnxModel(
      [
        { name: 'X', type: 'FP32', dims: ['n'] },
        { name: 'S', type: 'INT64', dims: ['r'] },
      ],
      [{ name: 'Y', type: 'FP32', dims: null }],
      [{ op: 'Reshape', input: ['X', 'S'], output: ['Y'] }],
    ),
    `${THREAD}output: [{name: Y, data_type: TYPE_FP32, dims: [-1, -1]}]\n`,
  );
  const classifier = onnxModel(
    [{ name: 'X', type: 'FP32', dims: ['n', 2] }],
    [
      { name: 'L', type: 'BYTES', dims: ['n'] },
      { name: 'Z', proto: ZIP_MAP },
    ],
    CLASSIFIER,
  );
  write(
    'labels',
    classifier,
    `${THREAD}output: [{name: L, data_type: TYPE_STRING, dims: [1], reshape: {shape: []}}]\n`,
  );
  write(
    'row_numbers',
    onnxModel(
      [{ name: 'X', type: 'FP32', dims: ['n'] }],
      [{ name: 'Y', type: 'FP32', dims: ['n'] }],
      [{ op: 'Identity', input: ['X'], output: ['Y'] }],
    ),
    THREAD,
  );
  await models.open('none');
});
afterAll(() => models.close());

const float32 = (name: string, shape: number[], values: readonly number[]) => ({
  name,
  datatype: 'FP32' as const,
  shape,
  data: new Uint8Array(Float32Array.from(values).buffer),
});
const int64 = (name: string, values: readonly bigint[]) => ({
  name,
  datatype: 'INT64' as const,
  shape: [values.length],
  data: new Uint8Array(BigInt64Array.from(values).buffer),
});

describe('an ONNX model', () => {
  it('runs in a process of its own: a request that ends it fails alone', async () => {
    const ask = (rows: number) =>
      models.infer('topk', [float32('X', [rows, 5], Array(5 * rows).fill(1)), int64('K', [2n])]);
    expect((await ask(2))[0]!.outputs[0]!.shape).toEqual([2, 2]);
    await expect(ask(0)).rejects.toThrow(
      /^the model 'topk' failed: Instance topk_0_0's process was ended by SIGFPE\.$/,
    );
    expect((await ask(1))[0]!.outputs[0]!.shape).toEqual([1, 2]);
    expect(models.repository.find('topk', '').activity().restarts).toBe(1);
  });

  it('says nothing of its own on the console: its errors are in the log, a line each', async () => {
    const server = await startServer([
      '--model-repository',
      models.folder,
      '--model-control-mode',
      'explicit',
      '--load-model',
      'any_rank',
    ]);
    const tensor = (name: string, datatype: string, data: number[]) => ({
      name,
      datatype,
      shape: [data.length],
      data,
    });
    const inputs = [tensor('X', 'FP32', [1, 2, 3]), tensor('S', 'INT64', [4, 4])];
    const response = await postJson(`${server.url}/v2/models/any_rank/infer`, { inputs });
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: expect.stringMatching(/^the model 'any_rank' failed: /) },
    ]);
    const { stderr } = await server.stop();
    const [line, ...others] = stderr.trim().split('\n');
    expect(JSON.parse(line!)).toMatchObject({ msg: 'request failed', path: '/v2/models/any_rank/infer' });
    expect(others).toEqual([expect.stringMatching(/^skein: finishing/)]);
  });

  it('has the dims of its configuration where its file does not say how many there are', async () => {
    const inputs = [float32('X', [6], [1, 2, 3, 4, 5, 6]), int64('S', [2n, 3n])];
    const [response] = await models.infer('any_rank', inputs);
    expect(response!.outputs[0]!.shape).toEqual([2, 3]);
    expect(models.repository.find('any_rank', '').config).toMatchObject({
      platform: 'onnxruntime_onnx',
      max_batch_size: 0,
      output: [{ dims: [-1, -1] }],
    });
  });

  it('is known to read no parameters of requests', () => {
    expect(models.repository.find('whole', '').ignoresParameters).toBe(true);
  });

  it('is served without the outputs that are no tensors, where its configuration leaves them out', async () => {
    const [response] = await models.infer('labels', [float32('X', [2, 2], [1, 0, 0, 1])]);
    expect(response!.outputs.map(({ name, shape }) => [name, shape])).toEqual([['L', [2, 1]]]);
    expect(Buffer.from(response!.outputs[0]!.data).toString()).toMatch(/cat.*dog/s);
  });
});

describe('an ONNX file', () => {
  it('with a number for each row is shown with one of one element, and batched', async () => {
    const shown = { dims: [1], reshape: { shape: [] } };
    expect(models.repository.find('row_numbers', '').config).toMatchObject({
      max_batch_size: 4,
      input: [shown],
      output: [shown],
    });
    const data = new Uint8Array(Float32Array.of(1.5, -2).buffer);
    const [response] = await models.infer('row_numbers', [
      { name: 'X', datatype: 'FP32', shape: [2, 1], data },
    ]);
    const [output] = response!.outputs;
    expect(output).toMatchObject({ name: 'Y', shape: [2, 1] });
    expect([...new Float32Array(output!.data.slice().buffer)]).toEqual([1.5, -2]);
  });

  it('tells its inputs, outputs and batches where no configuration does', () => {
    expect(models.repository.find('of_FP32', '').config).toMatchObject({
      backend: 'onnxruntime',
      max_batch_size: 4,
      input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [2] }],
      output: [{ name: 'Y', data_type: 'TYPE_FP32', dims: [2] }],
      dynamic_batching: { preferred_batch_size: [4] },
    });
    expect(models.repository.find('whole', '').config).toMatchObject({
      max_batch_size: 0,
      input: [{ dims: [2, 3] }],
    });
  });

  it('runs the rows of several requests at once, and gives each its own', async () => {
    const asked = [1, 2].map((i) =>
      models.infer('add_sub', [
        int32('INPUT0', [Array(16).fill(i), Array(16).fill(10 * i)]),
        int32('INPUT1', [Array(16).fill(1), Array(16).fill(2)]),
      ]),
    );
    const [a, b] = await Promise.all(asked);
    const values = (response: typeof a) =>
      response![0]!.outputs.map((output) => [output.shape, numbersOf(output)[0], numbersOf(output)[16]]);
    expect(values(a)).toEqual([
      [[2, 16], 2, 12],
      [[2, 16], 0, 8],
    ]);
    expect(values(b)).toEqual([
      [[2, 16], 3, 22],
      [[2, 16], 1, 18],
    ]);
    const { execution_count, inference_count, batch_stats } = models.repository
      .find('add_sub', '')
      .statistics();
    expect([execution_count, inference_count, batch_stats[0]!.batch_size]).toEqual([1, 4, 4]);
  });

  it('computes the outputs alone that somebody wants', async () => {
    const inputs = [
      int32(
        'INPUT0',
        [1, 2, 3, 4].map((i) => Array(16).fill(i)),
      ),
      int32('INPUT1', Array(4).fill(Array(16).fill(1))),
    ];
    const [response] = await models.infer('add_sub', inputs, { outputs: ['OUTPUT1'] });
    expect(response!.outputs.map(({ name }) => name)).toEqual(['OUTPUT1']);
  });

  it.each(Object.keys(ONNX_TYPES) as Datatype[])('passes elements of %s on bit for bit', async (datatype) => {
    const sizes: Partial<Record<Datatype, number>> = {
      BOOL: 1,
      INT8: 1,
      UINT8: 1,
      INT16: 2,
      UINT16: 2,
      FP16: 2,
      INT32: 4,
      UINT32: 4,
      FP32: 4,
    };
    const data =
      datatype === 'BYTES'
        ? Uint8Array.from([1, 0, 0, 0, 97, 3, 0, 0, 0, 0xe2, 0x82, 0xac])
        : Uint8Array.from({ length: 2 * (sizes[datatype] ?? 8) }, (_, i) =>
            datatype === 'BOOL' ? i : i + 1,
          );
    const [response] = await models.infer(`of_${datatype}`, [{ name: 'X', datatype, shape: [1, 2], data }]);
    expect(response!.outputs[0]).toMatchObject({ name: 'Y', datatype, shape: [1, 2] });
    expect([...response!.outputs[0]!.data]).toEqual([...data]);
  });
});

it('what is no ONNX file, and what contradicts one, is refused with the reason', async () => {
  const other = new ModuleModels();
  const put = (name: string, model: Uint8Array | string, config = '') => {
    mkdirSync(join(other.folder, name, '1'), { recursive: true });
    writeFileSync(join(other.folder, name, '1/model.onnx'), model);
    if (config !== '') writeFileSync(join(other.folder, name, 'config.yaml'), config);
  };
  put('none', 'this is no model');
  put(
    'wrong',
    addSubModel(),
    'max_batch_size: 8\ninput: [{name: INPUT0, data_type: TYPE_INT64, dims: [16]}, {name: INPUT1, data_type: TYPE_INT32, dims: [16]}]',
  );
  put('pinned', identity('FP32', [2, 3]), 'name: pinned\nmax_batch_size: 8\n');
  put('any', identity('FP32', null));
  put(
    'b16',
    onnxModel(
      [{ name: 'X', type: 'FP32', dims: ['n'] }],
      [{ name: 'Y', type: 16, dims: ['n'] }],
      [{ op: 'Cast', input: ['X'], output: ['Y'], attribute: [{ name: 'to', i: 16, type: 2 }] }],
    ),
  );
  put(
    'map',
    onnxModel(
      [{ name: 'X', type: 'FP32', dims: ['n', 2] }],
      [
        { name: 'L', type: 'BYTES', dims: ['n'] },
        { name: 'Z', proto: ZIP_MAP },
      ],
      CLASSIFIER,
    ),
  );
  put('away', addSubModel(), 'backend: onnxruntime\ndefault_model_filename: net.onnx\n');
  put('beyond', addSubModel(), 'backend: onnxruntime\ndefault_model_filename: ../../none/1/model.onnx\n');
  const problem = await other.open('none').catch(({ message }: Error) => message);
  for (const expected of [
    /failed to load 'pinned', .*config\.yaml:2: max_batch_size is 8, but tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is \[2,3\]/,
    /failed to load 'any', .*any, which has no config\.yaml, config\.pbtxt or config\.json: input lacks dims for 'X', of which/,
    /failed to load 'b16', .*model\.onnx: its output 'Y' is tensor\(bfloat16\); tensors of bool/,
    /failed to load 'map', its output 'Z' is seq\(map\(string,tensor\(float\)\)\); tensors of bool/,
    /failed to load 'away', .*\/away\/1 has no net\.onnx; there is model\.onnx$/m,
    /failed to load 'beyond', .*config\.yaml:2: default_model_filename is "\.\.\/\.\.\/none\/1\/model\.onnx"; the name of a file/,
  ])
    expect(problem).toMatch(expected);
  expect(problem).toMatch(
    /failed to load 'none', .*model\.onnx cannot be opened[\s\S]*failed to load 'wrong', .*config\.yaml:2: input\[0\]\.data_type is TYPE_INT64; the model's file has TYPE_INT32/,
  );
  await other.close();
});
