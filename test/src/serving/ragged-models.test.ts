import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { ModuleModels } from './support/module-models.js';
import { onnxModel } from './support/onnx-writer.js';

const models = new ModuleModels();

/** Three requests make a batch, whenever they come. */
const THREE =
  'max_batch_size: 16\ndynamic_batching: {preferred_batch_size: [3], max_queue_delay_microseconds: 1000000000}\n';
const RAGGED_X = 'input: [{name: X, data_type: TYPE_FP32, dims: [-1], allow_ragged_batch: true}]\n';
const INDEX =
  'batch_input: [{kind: BATCH_ACCUMULATED_ELEMENT_COUNT, target_name: INDEX, data_type: TYPE_FP32, source_input: X}]\n';
const SCATTERED = 'batch_output: [{target_name: Y, source_input: X}]\n';
/** Of each request, what the batch input says of it. */
const N = '{name: N, data_type: TYPE_FP32, dims: [1], reshape: {shape: []}}';

/** Y = X times X over the elements of all requests; N is the batch input, of which each request of one row has its number. */
const SQUARES = onnxModel(
  [
    { name: 'X', type: 'FP32', dims: ['elements'] },
    { name: 'INDEX', type: 'FP32', dims: ['requests'] },
  ],
  [
    { name: 'Y', type: 'FP32', dims: ['elements'] },
    { name: 'N', type: 'FP32', dims: ['requests'] },
  ],
  [
    { op: 'Mul', input: ['X', 'X'], output: ['Y'] },
    { op: 'Identity', input: ['INDEX'], output: ['N'] },
  ],
);

function writeOnnx(name: string, config: string): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/model.onnx'), SQUARES);
  writeFileSync(
    join(models.folder, name, 'config.yaml'),
    `platform: onnxruntime_onnx\nparameters: {instance_kind: thread}\n${config}`,
  );
}

const OUTPUTS = `output: [{name: Y, data_type: TYPE_FP32, dims: [-1]}, ${N}]\n`;

beforeAll(async () => {
  writeOnnx('squares', THREE + RAGGED_X + INDEX + OUTPUTS + SCATTERED);
  writeOnnx('no_index', THREE + RAGGED_X + OUTPUTS + SCATTERED);
  models.write(
    'seen',
    `${THREE}${RAGGED_X}output: [{name: Y, data_type: TYPE_FP32, dims: [-1]}, {name: N, data_type: TYPE_FP32, dims: [1]}]\n${INDEX}${SCATTERED}`,
    `export function execute(requests) {
      return requests.map(({ inputs: { X, INDEX } }) => ({ outputs: {
        Y: { data: X.data.map((x) => x * x) }, N: { data: INDEX.data, shape: [1, 1] } } }));
    }`,
  );
  models.write(
    'sums',
    `max_batch_size: 2\n${RAGGED_X}output: [{name: Y, data_type: TYPE_FP32, dims: [2]}]\n${INDEX}
sequence_batching: {max_sequence_idle_microseconds: 1000000000, direct: {minimum_slot_utilization: 1, max_queue_delay_microseconds: 1000000000}}\n`,
    `const sums = new Map();
    export function execute(requests) {
      return requests.map(({ sequence: { number }, inputs: { X, INDEX } }) => {
        sums.set(number, (sums.get(number) ?? 0) + X.data.reduce((sum, x) => sum + x, 0));
        return { outputs: { Y: { data: [sums.get(number), INDEX.data[0]] } } };
      });
    }`,
  );
  models.writeConfig(
    'around',
    `platform: ensemble\nmax_batch_size: 16\ninput: [{name: IN, data_type: TYPE_FP32, dims: [-1]}]
output: [{name: OUT, data_type: TYPE_FP32, dims: [-1]}, {name: PLACE, data_type: TYPE_FP32, dims: [1]}]
ensemble_scheduling: {step: [{model_name: squares, model_version: -1, input_map: {X: IN}, output_map: {Y: OUT, N: PLACE}}]}\n`,
  );
  await models.open('explicit', ['squares', 'seen', 'sums', 'around']);
});
afterAll(() => models.close());

const floats = (name: string, values: readonly number[]): InferTensor => ({
  name,
  datatype: 'FP32',
  shape: [1, values.length],
  data: new Uint8Array(Float32Array.from(values).buffer),
});
const read = ({ data }: InferTensor) => [...new Float32Array(data.slice().buffer)];

const ASKED = [
  [1, 2, 3],
  [4, 5, 6, 7],
  [8, 9, 10, 11, 12],
];

async function askAll(model: string, input = 'X') {
  const answers = await Promise.all(ASKED.map((values) => models.infer(model, [floats(input, values)])));
  return answers.map(([response]) => response!.outputs.map((one) => [one.shape, read(one)]));
}

/** Of Triton's example: requests of 3, 4 and 5 elements end at 3, 7 and 12. */
const ANSWERS = ASKED.map((values, i) => [
  [[1, values.length], values.map((x) => x * x)],
  [[1, 1], [[3, 7, 12][i]!]],
]);

describe('ragged requests', () => {
  it.each(['squares', 'seen'])(
    'are one batch of %s, without padding, and are given their own',
    async (model) => {
      expect(await askAll(model)).toEqual(ANSWERS);
      const { execution_count, inference_count } = models.repository.find(model, '').statistics();
      expect([execution_count, inference_count]).toEqual([1, 3]);
    },
  );

  it('of an ensemble share a batch of its member', async () => {
    const before = models.repository.find('squares', '').statistics().execution_count;
    expect(await askAll('around', 'IN')).toEqual(ANSWERS);
    expect(models.repository.find('squares', '').statistics().execution_count).toBe(before + 1);
  });

  it('of sequences share a batch, and each has its state', async () => {
    const ask = (id: bigint, start: boolean, values: number[]) =>
      models.infer('sums', [floats('X', values)], { sequence: { id, start, end: false } });
    const first = await Promise.all([ask(1n, true, [1]), ask(2n, true, [10, 20])]);
    const second = await Promise.all([ask(1n, false, [2, 3, 4]), ask(2n, false, [30])]);
    expect([...first, ...second].map(([response]) => read(response!.outputs[0]!))).toEqual([
      [1, 1],
      [30, 3],
      [10, 3],
      [60, 4],
    ]);
  });

  it('show clients neither batch inputs nor lists', () => {
    const { config } = models.repository.find('squares', '');
    expect(config.input.map(({ name, dims }) => [name, dims])).toEqual([['X', [-1]]]);
  });

  it('may not bring a batch input', async () => {
    const inputs = [floats('X', [1]), floats('INDEX', [1])];
    await expect(models.infer('seen', inputs)).rejects.toThrow("'INDEX'");
  });

  it('of a file whose batch input is not configured are refused at the load', async () => {
    await expect(models.repository.load('no_index')).rejects.toThrow("input lacks 'INDEX'");
  });
});
