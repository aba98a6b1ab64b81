import type { InferTensor } from '../../../../callbacks/infer/infer-types.js';
import type { ModuleModels } from './module-models.js';

/** Three requests make a batch, whenever they come. */
export const THREE =
  'max_batch_size: 16\ndynamic_batching: {preferred_batch_size: [3], max_queue_delay_microseconds: 1000000000}\n';
export const RAGGED_X = 'input: [{name: X, data_type: TYPE_FP32, dims: [-1], allow_ragged_batch: true}]\n';
export const INDEX =
  'batch_input: [{kind: BATCH_ACCUMULATED_ELEMENT_COUNT, target_name: INDEX, data_type: TYPE_FP32, source_input: X}]\n';
export const SCATTERED = 'batch_output: [{target_name: Y, source_input: X}]\n';

export const floats = (name: string, values: readonly number[]): InferTensor => ({
  name,
  datatype: 'FP32',
  shape: [1, values.length],
  data: new Uint8Array(Float32Array.from(values).buffer),
});
export const read = ({ data }: InferTensor) => [...new Float32Array(data.slice().buffer)];

const ASKED = [
  [1, 2, 3],
  [4, 5, 6, 7],
  [8, 9, 10, 11, 12],
];

/** Shapes and values of the outputs of three requests that are there at once. */
export async function askAll(models: ModuleModels, model: string, input = 'X') {
  const answers = await Promise.all(ASKED.map((values) => models.infer(model, [floats(input, values)])));
  return answers.map(([response]) => response!.outputs.map((one) => [one.shape, read(one)]));
}

/** Squares, and the batch input's number of each. Of Triton's example: requests of 3, 4 and 5 elements end at 3, 7 and 12. */
export const ANSWERS = ASKED.map((values, i) => [
  [[1, values.length], values.map((x) => x * x)],
  [[1, 1], [[3, 7, 12][i]!]],
]);
