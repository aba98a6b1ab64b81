import { afterAll, beforeAll, expect, it } from 'vitest';
import { ModuleModels } from '../support/module-models.js';
const models = new ModuleModels();
beforeAll(async () => {
  models.write('add', 'max_batch_size: 8\ninput: [{name: X, data_type: TYPE_INT32, dims: [2]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [2]}]\n',
   'export const execute = (rs) => rs.map(({inputs: {X}}) => ({outputs: {Y: {data: X.data.map((x) => x + 1), shape: X.shape}}}));');
  models.writeConfig('ens', `platform: ensemble
max_batch_size: 8
input: [{name: X, data_type: TYPE_INT32, dims: [2]}]
output: [{name: Z, data_type: TYPE_INT32, dims: [2]}]
ensemble_scheduling: {step: [{model_name: add, input_map: {X: X}, output_map: {Y: T}}, {model_name: add, model_version: -1, input_map: {X: T}, output_map: {Y: Z}}]}
`);
  await models.open();
}, 30000);
afterAll(() => models.close());
it('runs', async () => {
  expect(await models.numbers('ens', [[1, 2]])).toEqual([3, 4]);
  console.log(JSON.stringify(models.repository.find('ens','').statistics()), JSON.stringify(models.repository.rows()));
  await models.repository.unload('add');
  console.log(JSON.stringify(models.repository.rows()));
  await models.repository.load('add');
  console.log(JSON.stringify(models.repository.rows()));
  expect(await models.numbers('ens', [[1, 2]])).toEqual([3, 4]);
});
