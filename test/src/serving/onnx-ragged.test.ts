import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModuleModels } from './support/module-models.js';
import { onnxModel } from './support/onnx-writer.js';
import { ANSWERS, askAll, INDEX, RAGGED_X, SCATTERED, THREE } from './support/ragged.js';

const models = new ModuleModels();

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
const OUTPUTS =
  'output: [{name: Y, data_type: TYPE_FP32, dims: [-1]}, {name: N, data_type: TYPE_FP32, dims: [1], reshape: {shape: []}}]\n';

function writeOnnx(name: string, config: string): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/model.onnx'), SQUARES);
  writeFileSync(
    join(models.folder, name, 'config.yaml'),
    `platform: onnxruntime_onnx\nparameters: {instance_kind: thread}\n${config}`,
  );
}

beforeAll(async () => {
  writeOnnx('squares', THREE + RAGGED_X + INDEX + OUTPUTS + SCATTERED);
  writeOnnx('no_index', THREE + RAGGED_X + OUTPUTS + SCATTERED);
  await models.open('explicit', ['squares']);
});
afterAll(() => models.close());

describe('ragged requests of an ONNX file', () => {
  it('are one batch, without padding, and are given their own', async () => {
    expect(await askAll(models, 'squares')).toEqual(ANSWERS);
    const { execution_count, inference_count } = models.repository.find('squares', '').statistics();
    expect([execution_count, inference_count]).toEqual([1, 3]);
  });

  it('show clients neither batch inputs nor lists', () => {
    const { config } = models.repository.find('squares', '');
    expect(config.input.map(({ name, dims }) => [name, dims])).toEqual([['X', [-1]]]);
  });

  it('are refused at the load where its batch input is not configured', async () => {
    await expect(models.repository.load('no_index')).rejects.toThrow("input lacks 'INDEX'");
  });
});
