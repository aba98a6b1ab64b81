import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModuleModels } from './support/module-models.js';
import { ANSWERS, askAll, floats, INDEX, RAGGED_X, read, SCATTERED, THREE } from './support/ragged.js';

const models = new ModuleModels();

beforeAll(async () => {
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
ensemble_scheduling: {step: [{model_name: seen, model_version: -1, input_map: {X: IN}, output_map: {Y: OUT, N: PLACE}}]}\n`,
  );
  await models.open('explicit', ['seen', 'sums', 'around']);
});
afterAll(() => models.close());

describe('ragged requests', () => {
  it('are one batch, without padding, and are given their own', async () => {
    expect(await askAll(models, 'seen')).toEqual(ANSWERS);
    const { execution_count, inference_count } = models.repository.find('seen', '').statistics();
    expect([execution_count, inference_count]).toEqual([1, 3]);
  });

  it('of an ensemble share a batch of its member', async () => {
    const before = models.repository.find('seen', '').statistics().execution_count;
    expect(await askAll(models, 'around', 'IN')).toEqual(ANSWERS);
    expect(models.repository.find('seen', '').statistics().execution_count).toBe(before + 1);
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
    const { config } = models.repository.find('seen', '');
    expect(config.input.map(({ name, dims }) => [name, dims])).toEqual([['X', [-1]]]);
  });

  it('may not bring a batch input', async () => {
    const inputs = [floats('X', [1]), floats('INDEX', [1])];
    await expect(models.infer('seen', inputs)).rejects.toThrow("'INDEX'");
  });
});
