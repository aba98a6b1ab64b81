import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';
import { addSubModel, ONNX_TYPES, onnxModel } from './support/onnx-writer.js';

const models = new ModuleModels();

function write(name: string, model: Uint8Array | string, config = ''): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/model.onnx'), model);
  if (config !== '') writeFileSync(join(models.folder, name, 'config.yaml'), config);
}

const identity = (type: keyof typeof ONNX_TYPES, dims: readonly (number | string)[]) =>
  onnxModel(
    [{ name: 'X', type, dims }],
    [{ name: 'Y', type, dims }],
    [{ op: 'Identity', input: ['X'], output: ['Y'] }],
  );

beforeAll(async () => {
  write(
    'add_sub',
    addSubModel(),
    'platform: onnxruntime_onnx\nmax_batch_size: 8\ndynamic_batching: {preferred_batch_size: [4], max_queue_delay_microseconds: 1000000}\n',
  );
  write('whole', identity('FP32', [2, 3]));
  for (const type of Object.keys(ONNX_TYPES)) write(`of_${type}`, identity(type as 'FP32', ['n', 2]));
  write(
    'row_numbers',
    onnxModel(
      [{ name: 'X', type: 'FP32', dims: ['n'] }],
      [{ name: 'Y', type: 'FP32', dims: ['n'] }],
      [{ op: 'Identity', input: ['X'], output: ['Y'] }],
    ),
  );
  await models.open('none');
}, 120_000);
afterAll(() => models.close());

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
  await expect(other.open('none')).rejects.toThrow(
    /failed to load 'none', .*model\.onnx cannot be opened[\s\S]*failed to load 'wrong', .*config\.yaml:2: input\[0\]\.data_type is TYPE_INT64; the model's file has TYPE_INT32/,
  );
  await other.close();
});
