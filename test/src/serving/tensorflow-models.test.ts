import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { elementsOf, packElements } from '../../../callbacks/infer/byte-elements.js';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { describeWithTensorFlow } from '../../support/test-tensorflow.js';
import { int32, ModuleModels } from './support/module-models.js';

interface Judged {
  shape: number[];
  data: (number | string | boolean)[];
}

interface Golden {
  model: string;
  signature: string;
  calls: { inputs: Record<string, Judged>; outputs: Record<string, Judged> }[];
}

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/saved-models/${name}`, import.meta.url));
const { goldens } = JSON.parse(
  readFileSync(new URL('../../goldens/saved-models.json', import.meta.url), 'utf8'),
) as { goldens: Golden[] };

function put(models: ModuleModels, name: string, saved: string, config = ''): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  cpSync(fixture(saved), join(models.folder, name, '1/model.savedmodel'), { recursive: true });
  if (config !== '') writeFileSync(join(models.folder, name, 'config.yaml'), config);
}

/** A tensor of what a golden has: texts as bytes in hexadecimal, int64 as decimals. */
function tensorOf(name: string, datatype: Datatype, { shape, data }: Judged): InferTensor {
  return { name, datatype, shape, data: bytesOf(datatype, data) };
}

function bytesOf(datatype: Datatype, data: Judged['data']): Uint8Array {
  if (datatype === 'BYTES') return packElements(data.map((text) => Buffer.from(String(text), 'hex')));
  if (datatype === 'BOOL' || datatype === 'UINT8') return Uint8Array.from(data.map(Number));
  const numbers =
    datatype === 'INT64'
      ? BigInt64Array.from(data.map((text) => BigInt(text as string)))
      : datatype === 'INT32'
        ? Int32Array.from(data.map(Number))
        : Float32Array.from(data.map(Number));
  return new Uint8Array(numbers.buffer);
}

function valuesOf({ datatype, data }: InferTensor): Judged['data'] {
  if (datatype === 'BYTES') return elementsOf(data).map((bytes) => Buffer.from(bytes).toString('hex'));
  const { buffer } = data.slice();
  if (datatype === 'BOOL') return [...new Uint8Array(buffer)].map((byte) => byte !== 0);
  if (datatype === 'INT64') return [...new BigInt64Array(buffer)].map(String);
  return datatype === 'INT32' ? [...new Int32Array(buffer)] : [...new Float32Array(buffer)];
}

describeWithTensorFlow('a SavedModel', () => {
  const models = new ModuleModels();

  beforeAll(async () => {
    put(models, 'affine', 'affine');
    put(models, 'affine_twice', 'affine', 'parameters: {TF_SIGNATURE_DEF: {string_value: twice}}\n');
    put(models, 'types', 'types');
    put(models, 'whole', 'whole');
    put(
      models,
      'pick',
      'pick',
      'platform: tensorflow_savedmodel\nmax_batch_size: 8\ndynamic_batching: {preferred_batch_size: [2], max_queue_delay_microseconds: 100000000}\n',
    );
    put(models, 'pick_whole', 'pick', 'max_batch_size: 0\n');
    put(models, 'counter', 'counter');
    put(models, 'vocabulary', 'vocabulary');
    put(models, 'tagged', 'tagged', 'parameters: {TF_GRAPH_TAG: {string_value: "serve,tripled"}}\n');
    put(
      models,
      'sums',
      'sums',
      `max_batch_size: 4
sequence_batching:
  max_sequence_idle_microseconds: 600000000
  oldest: {max_queue_delay_microseconds: 60000000, preferred_batch_size: [2]}
  control_input: [{name: start, control: [{kind: CONTROL_SEQUENCE_START, int32_false_true: [0, 1]}]}]
  state: [{input_name: sum, output_name: after, data_type: TYPE_INT32, dims: [2]}]
model_warmup: [{name: zeros, batch_size: 2, inputs: {x: {data_type: TYPE_INT32, dims: [2], zero_data: true}}}]
`,
    );
    await models.open('none');
  });
  afterAll(() => models.close());

  const named = ({ model, signature }: Golden) =>
    signature === 'serving_default' ? model : `${model}_${signature}`;

  it.each(goldens.map((golden) => [named(golden), golden] as const))(
    'answers what TensorFlow does: %s',
    async (name, { calls }) => {
      const { config } = models.repository.find(name, '');
      for (const { inputs, outputs } of calls) {
        const typed = Object.entries(inputs).map(([input, value]) => {
          const { data_type, reshape } = config.input.find((one) => one.name === input)!;
          const datatype =
            data_type === 'TYPE_STRING' ? 'BYTES' : (data_type.slice('TYPE_'.length) as Datatype);
          return tensorOf(input, datatype, reshape === undefined ? value : { ...value, shape: [1] });
        });
        const [response] = await models.infer(name, typed);
        expect(response!.outputs.map((output) => output.name)).toEqual(config.output.map((one) => one.name));
        for (const output of response!.outputs) {
          const judged = outputs[output.name]!;
          const values = valuesOf(output);
          expect(values).toHaveLength(judged.data.length);
          if (output.datatype !== 'FP32') expect(values).toEqual(judged.data);
          else
            for (const [i, value] of values.entries()) expect(value).toBeCloseTo(judged.data[i] as number, 5);
        }
      }
    },
  );

  it('has sequences, whose states and control inputs are rows of its own', async () => {
    const ask = async (id: bigint, values: number[], start = false) => {
      const [response] = await models.infer('sums', [int32('x', [values])], {
        sequence: { id, start, end: false },
      });
      return response!.outputs.map((output) => [output.name, valuesOf(output)]);
    };
    expect(await Promise.all([ask(1n, [1, 2], true), ask(2n, [10, 20], true)])).toEqual([
      [['y', [101, 102]]],
      [['y', [110, 120]]],
    ]);
    expect(await Promise.all([ask(2n, [1, 1]), ask(1n, [5, 5])])).toEqual([
      [['y', [11, 21]]],
      [['y', [6, 7]]],
    ]);
  });

  it('tells its inputs, outputs and batches where no configuration does', () => {
    expect(models.repository.find('affine', '').config).toMatchObject({
      backend: 'tensorflow',
      max_batch_size: 4,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [3] }],
      output: [
        { name: 'total', data_type: 'TYPE_FP32', dims: [1], reshape: { shape: [] } },
        { name: 'y', data_type: 'TYPE_FP32', dims: [2] },
      ],
      dynamic_batching: { preferred_batch_size: [4] },
    });
    expect(models.repository.find('whole', '').config).toMatchObject({
      max_batch_size: 0,
      input: [
        { name: 'factor', dims: [1], reshape: { shape: [] } },
        { name: 'table', dims: [2, 3] },
      ],
    });
  });

  it('runs the rows of several requests at once, and computes what somebody wants alone', async () => {
    const row = (value: number) => [int32('index', [[value]])];
    const [a, b] = await Promise.all([models.infer('pick', row(2)), models.infer('pick', row(0))]);
    expect([a, b].map((one) => valuesOf(one![0]!.outputs[0]!))).toEqual([[30], [10]]);
    const x = tensorOf('x', 'FP32', { shape: [1, 3], data: [1, 2, 3] });
    const [only] = await models.infer('affine', [x], { outputs: ['y'] });
    expect(only!.outputs.map(({ name }) => name)).toEqual(['y']);
  });

  it('fails the request alone whose values it cannot take, in the words of TensorFlow', async () => {
    const row = (value: number) => models.infer('pick', [int32('index', [[value]])]);
    const [good, bad] = await Promise.allSettled([row(1), row(7)]);
    expect(good).toMatchObject({ status: 'fulfilled' });
    expect((bad as PromiseRejectedResult).reason.message).toMatch(
      /^the model 'pick' failed: TensorFlow failed \(indices\[0,0\] = 7 is not in \[0, 3\)/,
    );
  });

  it('is started anew when failed runs have left too much of their inputs in the library', async () => {
    const { shape, data } = { shape: [12_000_000, 1], data: new Int32Array(12_000_000).fill(9) };
    const index = { name: 'index', datatype: 'INT32', shape, data: new Uint8Array(data.buffer) } as const;
    const restarts = () => models.repository.find('pick_whole', '').activity().restarts;
    for (let i = 0; i < 3; i++) {
      expect(restarts()).toBe(0);
      await expect(models.infer('pick_whole', [index])).rejects.toThrow('is not in [0, 3)');
    }
    await expect.poll(restarts).toBe(1);
    const [response] = await models.infer('pick_whole', [int32('index', [[1]])]);
    expect(valuesOf(response!.outputs[0]!)).toEqual([20]);
    expect(models.errors.map(({ message }) => message).join()).toMatch(/144000000 bytes of their inputs/);
  });
});

describeWithTensorFlow('what is no SavedModel that TensorFlow takes', () => {
  it('is refused with the reason, at its load', async () => {
    const models = new ModuleModels();
    put(models, 'broken', 'affine');
    writeFileSync(join(models.folder, 'broken/1/model.savedmodel/variables/variables.index'), 'no table');
    put(models, 'threads', 'affine', 'parameters: {instance_kind: {string_value: thread}}\n');
    put(models, 'many', 'affine', 'parameters: {TF_NUM_INTRA_THREADS: {string_value: many}}\n');
    put(models, 'other', 'affine', 'input: [{name: x, data_type: TYPE_INT32, dims: [3]}]\n');
    const failed = await models.open('none').catch((error: Error) => error.message);
    await models.close();
    expect(failed).toMatch(/failed to load 'broken', .*model\.savedmodel cannot be loaded \(.*table/);
    expect(failed).toMatch(
      /failed to load 'threads', .*config\.yaml:1: parameters\.instance_kind is "thread"; TensorFlow computes in one thread of a process, so 'process' is expected/,
    );
    expect(failed).toContain('parameters.TF_NUM_INTRA_THREADS is "many"; a whole number from 1 to 999');
    expect(failed).toMatch(
      /failed to load 'other', .*data_type is TYPE_INT32; the model's file has TYPE_FP32/,
    );
  });
});
