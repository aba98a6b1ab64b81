import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';
import { type OnnxTensorInfo, onnxModel } from './support/onnx-writer.js';

const models = new ModuleModels();
const PATIENT = 'max_sequence_idle_microseconds: 600000000';
const control = (name: string, fields: string) =>
  `{name: ${name}, control: [{kind: CONTROL_SEQUENCE_${name}, ${fields}}]}`;
type Dims = NonNullable<OnnxTensorInfo['dims']>;
const tensor = (name: string, dims: Dims, type: OnnxTensorInfo['type'] = 'INT32') => ({
  name,
  type,
  dims,
});

function write(name: string, model: Uint8Array, config: string): void {
  mkdirSync(join(models.folder, name, '1'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/model.onnx'), model);
  writeFileSync(join(models.folder, name, 'config.yaml'), `platform: onnxruntime_onnx\n${config}`);
}

/** OUT = IN + X, the partial sums of Triton's example, and Y = OUT: `dims` after the rows. */
function accumulator(rows: Dims, dims: Dims): Uint8Array {
  const shape = [...rows, ...dims];
  return onnxModel(
    [tensor('X', shape), tensor('IN', shape)],
    [tensor('Y', shape), tensor('OUT', shape)],
    [
      { op: 'Add', input: ['X', 'IN'], output: ['OUT'] },
      { op: 'Identity', input: ['OUT'], output: ['Y'] },
    ],
  );
}

/** OUT = IN with X after it, which grows with each request; Y = OUT. */
const growing = onnxModel(
  [tensor('X', ['rows', 1]), tensor('IN', ['rows', 'length']), tensor('READY', ['rows', 1])],
  [tensor('Y', ['rows', 'more']), tensor('OUT', ['rows', 'more'])],
  [
    { op: 'Mul', input: ['X', 'READY'], output: ['ready'] },
    { op: 'Concat', input: ['IN', 'ready'], output: ['OUT'], attributes: { axis: 1 } },
    { op: 'Identity', input: ['OUT'], output: ['Y'] },
  ],
);

/** Y = X + START + END, and the id: controls of every kind of type. START is a number for each row and no list of one. */
const told = onnxModel(
  [
    tensor('X', ['rows', 1]),
    tensor('START', ['rows'], 'FP32'),
    tensor('END', ['rows', 1], 'BOOL'),
    tensor('CORRID', ['rows', 1], 'INT64'),
  ],
  [
    tensor('Y', ['rows', 1]),
    tensor('S', ['rows'], 'FP32'),
    tensor('E', ['rows', 1], 'BOOL'),
    tensor('C', ['rows', 1], 'INT64'),
  ],
  [
    { op: 'Identity', input: ['X'], output: ['Y'] },
    { op: 'Identity', input: ['START'], output: ['S'] },
    { op: 'Identity', input: ['END'], output: ['E'] },
    { op: 'Identity', input: ['CORRID'], output: ['C'] },
  ],
);

const STATE = 'state: [{input_name: IN, output_name: OUT, data_type: TYPE_INT32, dims: [2]}]';
const GROWING = 'state: [{input_name: IN, output_name: OUT, data_type: TYPE_INT32, dims: [-1]}]';
const READY = control('READY', 'int32_false_true: [0, 1]');

beforeAll(async () => {
  write(
    'sums',
    accumulator(['rows'], [2]),
    `max_batch_size: 4\nsequence_batching: {${PATIENT}, oldest: {max_candidate_sequences: 8, max_queue_delay_microseconds: 60000000, preferred_batch_size: [2]}, ${STATE}}`,
  );
  write('alone', accumulator([], [2]), `max_batch_size: 0\nsequence_batching: {${PATIENT}, ${STATE}}`);
  write(
    'growing',
    growing,
    `max_batch_size: 4\nsequence_batching: {${PATIENT}, direct: {minimum_slot_utilization: 0.75, max_queue_delay_microseconds: 60000000}, control_input: [${READY}], ${GROWING}}`,
  );
  write(
    'growing_oldest',
    growing,
    `max_batch_size: 4\nsequence_batching: {${PATIENT}, oldest: {preferred_batch_size: [2], max_queue_delay_microseconds: 60000000}, control_input: [${READY}], ${GROWING}}`,
  );
  write(
    'told',
    told,
    `max_batch_size: 4\nsequence_batching: {${PATIENT}, control_input: [${[
      control('START', 'fp32_false_true: [0.5, 1.5]'),
      control('END', 'bool_false_true: [false, true]'),
      control('CORRID', 'data_type: TYPE_INT64'),
    ].join(', ')}]}`,
  );
  await models.open('none');
});
afterAll(() => models.close());

const ask = async (
  model: string,
  id: number,
  values: number[],
  flags: { start?: boolean; end?: boolean } = {},
) => {
  const sequence = { id: BigInt(id), start: flags.start ?? false, end: flags.end ?? false };
  const [response] = await models.infer(model, [int32('X', [values])], { sequence, outputs: ['Y'] });
  return numbersOf(response!.outputs[0]!);
};
const statistics = (model: string) => {
  const { inference_count, batch_stats } = models.repository.find(model, '').statistics();
  return [
    inference_count,
    Object.fromEntries(batch_stats.map((one) => [one.batch_size, one.compute_infer.count])),
  ];
};

describe('sequences of an ONNX file', () => {
  it('have states that are neither inputs nor outputs to clients', () => {
    const { input, output, sequence_batching } = models.repository.find('sums', '').config;
    expect([input, output].map((list) => list.map(({ name }) => name))).toEqual([['X'], ['Y']]);
    expect(sequence_batching!.state).toHaveLength(1);
  });

  it('keep their states apart, in batches of several', async () => {
    const both = (values: number[][], flags = {}) =>
      Promise.all(values.map((one, i) => ask('sums', i + 1, one, flags)));
    expect(
      await both(
        [
          [1, 2],
          [10, 20],
        ],
        { start: true },
      ),
    ).toEqual([
      [1, 2],
      [10, 20],
    ]);
    expect(
      await both([
        [1, 1],
        [5, 5],
      ]),
    ).toEqual([
      [2, 3],
      [15, 25],
    ]);
    expect(
      await both(
        [
          [0, 0],
          [1, 1],
        ],
        { end: true },
      ),
    ).toEqual([
      [2, 3],
      [16, 26],
    ]);
    expect(
      await both(
        [
          [7, 7],
          [8, 8],
        ],
        { start: true, end: true },
      ),
    ).toEqual([
      [7, 7],
      [8, 8],
    ]);
    expect(statistics('sums')).toEqual([8, { 2: 4 }]);
  });

  it('work where the model takes no batches', async () => {
    const one = async (values: number[], flags: { start: boolean; end: boolean }) => {
      const input = { ...int32('X', [values]), shape: [2] };
      const [response] = await models.infer('alone', [input], { sequence: { id: 4n, ...flags } });
      return [response!.outputs[0]!.shape, numbersOf(response!.outputs[0]!)];
    };
    expect(await one([1, 2], { start: true, end: false })).toEqual([[2], [1, 2]]);
    expect(await one([1, 2], { start: false, end: true })).toEqual([[2], [2, 4]]);
  });

  it('with states of other sizes run apart, each in its slot', async () => {
    // Three of four slots are a batch. The sequences are of other lengths when they meet.
    const start = (id: number) => ask('growing', id, [id], { start: true });
    expect(await Promise.all([1, 2, 3].map(start))).toEqual([
      [0, 1],
      [0, 2],
      [0, 3],
    ]);
    expect(await Promise.all([ask('growing', 2, [5]), ask('growing', 1, [5]), start(3)])).toEqual([
      [0, 2, 5],
      [0, 1, 5],
      [0, 3],
    ]);
    expect(await Promise.all([1, 2, 3].map((id) => ask('growing', id, [9], { end: true })))).toEqual([
      [0, 1, 5, 9],
      [0, 2, 5, 9],
      [0, 3, 9],
    ]);
    expect(statistics('growing')).toEqual([9, { 3: 3 }]);
  });

  it('with states of other sizes run apart where the oldest go, too', async () => {
    const start = (id: number) => ask('growing_oldest', id, [id], { start: true });
    await Promise.all([start(1), start(2)]);
    expect(await Promise.all([ask('growing_oldest', 1, [5]), start(2)])).toEqual([
      [0, 1, 5],
      [0, 2],
    ]);
    expect(statistics('growing_oldest')).toEqual([4, { 2: 2 }]);
  });

  it('are told of by controls of every type, as a number for each row too', async () => {
    const of = async (id: bigint, flags: { start: boolean; end: boolean }) => {
      const [response] = await models.infer('told', [int32('X', [[3]])], { sequence: { id, ...flags } });
      const data = (name: string) => response!.outputs.find((one) => one.name === name)!.data.slice().buffer;
      return [
        numbersOf(response!.outputs[0]!)[0],
        new Float32Array(data('S'))[0],
        new Uint8Array(data('E'))[0],
        new BigInt64Array(data('C'))[0],
      ];
    };
    expect(await of(5n, { start: true, end: false })).toEqual([3, 1.5, 0, 5n]);
    expect(await of(5n, { start: false, end: true })).toEqual([3, 0.5, 1, 5n]);
    expect(await of(2n ** 64n - 1n, { start: true, end: true })).toEqual([3, 1.5, 1, -1n]);
  });
});
