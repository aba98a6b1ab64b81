import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig, type Told } from '../../../models/repository/complete-config.js';
import type { DataType, ModelConfig } from '../../../models/repository/model-config.js';
import { parseModelConfig } from '../../../models/repository/read-model-config.js';
import { controlTensors } from '../../../models/repository/sequence-tensors.js';

const IO =
  'max_batch_size: 4\ninput: [{name: I, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: O, data_type: TYPE_INT32, dims: [1]}]\n';

function complete(text: string, told: Told = {}, format: 'yaml' | 'pbtxt' = 'yaml'): ModelConfig {
  const written = parseModelConfig(text, 'c', format);
  const facts = { name: 'm', folder: 'm', backend: 'b', defaultFilename: 'model.x', told };
  const config = completeConfig(written, facts);
  checkConfig(config, written);
  return config;
}

const control = (name: string, fields: string) => `{name: ${name}, control: [{${fields}}]}`;
const START = control('START', 'kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]');
const CORRID = control('CORRID', 'kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_UINT64');
const withControls = (...controls: string[]) =>
  `sequence_batching: {control_input: [${controls.join(', ')}]}`;
const STATE = 'input_name: S, output_name: T, data_type: TYPE_FP32, dims: [-1, 2]';
const withState = (more: string, state = STATE) => `sequence_batching: {state: [{${state}${more}}]}`;
const initial = (fields: string) =>
  withState(`, initial_state: [{name: zero, data_type: TYPE_FP32, dims: [1, 2], ${fields}}]`);

describe('sequence_batching', () => {
  it("is completed with Triton's defaults", () => {
    expect(complete(`${IO}sequence_batching: {}`).sequence_batching).toEqual({
      max_sequence_idle_microseconds: 1_000_000,
      direct: { max_queue_delay_microseconds: 0, minimum_slot_utilization: 0 },
      control_input: [],
      state: [],
      iterative_sequence: false,
    });
    const oldest = complete(`${IO}sequence_batching: {max_sequence_idle_microseconds: 5, oldest: {}}`);
    expect(oldest.sequence_batching).toMatchObject({
      max_sequence_idle_microseconds: 5,
      oldest: {
        max_candidate_sequences: 0,
        preferred_batch_size: [4],
        max_queue_delay_microseconds: 0,
        preserve_ordering: false,
      },
    });
    expect(oldest.sequence_batching!.direct).toBeUndefined();
    expect(oldest.dynamic_batching).toBeUndefined();
  });

  it('is read from a text of protobuf, each field of controls and states with its default', () => {
    const { sequence_batching: batching } = complete(
      `max_batch_size: 2
      input { name: "I" data_type: TYPE_INT32 dims: 1 } output { name: "O" data_type: TYPE_INT32 dims: 1 }
      sequence_batching {
        direct { minimum_slot_utilization: 0.5 max_queue_delay_microseconds: 7 }
        control_input [ { name: "END" control [ { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } ] } ]
        state [ { input_name: "S" output_name: "T" data_type: TYPE_INT64 dims: [ 3 ]
          initial_state { name: "i" data_type: TYPE_INT64 dims: [ 3 ] zero_data: true } } ]
      }`,
      {},
      'pbtxt',
    );
    expect(batching).toMatchObject({
      direct: { minimum_slot_utilization: 0.5, max_queue_delay_microseconds: 7 },
      control_input: [
        {
          name: 'END',
          control: [{ bool_false_true: [false, true], fp32_false_true: [], data_type: 'TYPE_INVALID' }],
        },
      ],
      state: [{ use_growable_memory: false, initial_state: [{ name: 'i', dims: [3], zero_data: true }] }],
    });
  });

  it('tells the type and the values of each control', () => {
    const controls = [
      START,
      control('END', 'kind: CONTROL_SEQUENCE_END, int32_false_true: [-5, 7]'),
      control('READY', 'kind: CONTROL_SEQUENCE_READY, bool_false_true: [false, true]'),
      CORRID,
    ];
    const config = complete(IO + withControls(...controls));
    expect(controlTensors(config.sequence_batching!)).toEqual([
      { name: 'START', kind: 'CONTROL_SEQUENCE_START', dataType: 'TYPE_FP32', values: [0, 1] },
      { name: 'END', kind: 'CONTROL_SEQUENCE_END', dataType: 'TYPE_INT32', values: [-5, 7] },
      { name: 'READY', kind: 'CONTROL_SEQUENCE_READY', dataType: 'TYPE_BOOL', values: [0, 1] },
      { name: 'CORRID', kind: 'CONTROL_SEQUENCE_CORRID', dataType: 'TYPE_UINT64', values: null },
    ]);
  });

  it.each([
    [
      'sequence_batching: {}\ndynamic_batching: {}',
      'c:5: dynamic_batching and sequence_batching exclude each other',
    ],
    [
      'sequence_batching: {direct: {minimum_slot_utilization: 1.5}}',
      'c:4: sequence_batching.direct.minimum_slot_utilization is 1.5; a number from 0 to 1 is expected.',
    ],
    [
      'sequence_batching: {direct: {minimum_slot_utilization: -0.1}}',
      'minimum_slot_utilization is -0.1; a number from 0 to 1',
    ],
    ['sequence_batching: {direct: {}, oldest: {}}', 'sequence_batching.oldest and direct exclude each other'],
    [
      'sequence_batching: {max_sequence_idle_microseconds: -1}',
      'sequence_batching.max_sequence_idle_microseconds is -1; a whole number',
    ],
    [
      'sequence_batching: {oldest: {max_candidate_sequences: -1}}',
      'oldest.max_candidate_sequences is -1; a whole number from 0 to 65536',
    ],
    [
      'sequence_batching: {oldest: {preferred_batch_size: [2, 5]}}',
      'oldest.preferred_batch_size[1] is 5; a whole number from 1 to 4',
    ],
    [
      'sequence_batching: {oldest: {preferred_batch_size: [0]}}',
      'preferred_batch_size[0] is 0; a whole number from 1',
    ],
    [
      'instance_group: [{count: 8}]\nsequence_batching: {oldest: {max_candidate_sequences: 65536}}',
      'sequence_batching means 524288 sequences at once; at most 262144 are taken.',
    ],
    [
      'response_cache: {enable: true}\nsequence_batching: {}',
      'c:4: response_cache excludes sequence_batching',
    ],
    ['sequence_batching: {oldst: {}}', 'sequence_batching.oldst is no field here; oldest may be meant'],
  ])('is held against the rules: %s', (text, expected) => {
    expect(() => complete(IO + text)).toThrow(expected);
  });

  it.each([
    [
      withControls('{control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}'),
      'c:4: sequence_batching.control_input[0].name is missing.',
    ],
    [
      withControls(START, control('START', 'kind: CONTROL_SEQUENCE_END, fp32_false_true: [0, 1]')),
      "control_input[1].name is 'START', the name of control_input[0] too.",
    ],
    [
      withControls(control('I', 'kind: CONTROL_SEQUENCE_END, fp32_false_true: [0, 1]')),
      "control_input[0].name is 'I', the name of input[0] too.",
    ],
    [
      withControls(START, control('B', 'kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]')),
      'control_input[1].control[0].kind is CONTROL_SEQUENCE_START, as that of control_input[0] is.',
    ],
    [withControls('{name: A}'), 'control_input[0].control has 0 elements; one is expected.'],
    [
      withControls('{name: A, control: [{}, {}]}'),
      'control_input[0].control has 2 elements; one is expected.',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_END')),
      'control_input[0].control[0] has no values; one of int32_false_true, fp32_false_true, bool_false_true is expected.',
    ],
    [
      withControls(
        control('A', 'kind: CONTROL_SEQUENCE_END, fp32_false_true: [0, 1], int32_false_true: [0, 1]'),
      ),
      'has int32_false_true and fp32_false_true; one of',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_END, fp32_false_true: [0]')),
      'control[0].fp32_false_true has 1 values; two are expected, for false and for true.',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_END, bool_false_true: [false, true, true]')),
      'control[0].bool_false_true has 3 values; two are expected',
    ],
    [
      withControls(
        control('A', 'kind: CONTROL_SEQUENCE_END, fp32_false_true: [0, 1], data_type: TYPE_INT32'),
      ),
      'data_type is TYPE_INT32, but fp32_false_true says TYPE_FP32.',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_CORRID')),
      'control[0].data_type is TYPE_INVALID; one of TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32, TYPE_STRING is expected for CONTROL_SEQUENCE_CORRID.',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_FP32')),
      'data_type is TYPE_FP32; one of TYPE_UINT64',
    ],
    [
      withControls(
        control('A', 'kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_UINT64, int32_false_true: [0, 1]'),
      ),
      'int32_false_true is of no use to CONTROL_SEQUENCE_CORRID',
    ],
    [
      withControls(control('A', 'kind: CONTROL_SEQUENCE_MIDDLE, data_type: TYPE_UINT64')),
      'CONTROL_SEQUENCE_MIDDLE',
    ],
  ])('has controls that make sense: %s', (text, expected) => {
    expect(() => complete(IO + text)).toThrow(expected);
  });

  it.each([
    [
      withState('', 'output_name: T, data_type: TYPE_FP32, dims: [1]'),
      'c:4: sequence_batching.state[0].input_name is missing.',
    ],
    [withState('', 'input_name: S, data_type: TYPE_FP32, dims: [1]'), 'state[0].output_name is missing.'],
    [withState('', 'input_name: S, output_name: T, dims: [1]'), 'state[0].data_type is missing.'],
    [
      withState('', 'input_name: S, output_name: T, data_type: TYPE_FP32'),
      'state[0].dims is missing; at least one dimension',
    ],
    [
      withState('', 'input_name: S, output_name: T, data_type: TYPE_FP32, dims: [0]'),
      'state[0].dims has 0; sizes from 1',
    ],
    [
      withState('', 'input_name: I, output_name: T, data_type: TYPE_FP32, dims: [1]'),
      "state[0].input_name is 'I', the name of input[0] too.",
    ],
    [
      `sequence_batching: {state: [{${STATE}}, {${STATE.replace('S,', 'U,')}}]}`,
      "state[1].output_name is 'T', the name of state[0].output_name too.",
    ],
    [
      `sequence_batching: {state: [{${STATE}}, {${STATE.replace('T,', 'U,')}}]}`,
      "state[1].input_name is 'S', the name of state[0].input_name too.",
    ],
    [
      withState('', STATE.replace('T,', 'O,')),
      "state[0].data_type is TYPE_FP32; the output 'O' has TYPE_INT32.",
    ],
    [
      withState(', use_growable_memory: true'),
      'state[0].use_growable_memory needs use_same_buffer_for_input_output.',
    ],
    [
      withState(', initial_state: [{}, {}]'),
      'state[0].initial_state has 2 elements; at most one is expected.',
    ],
    [
      withState(', initial_state: [{data_type: TYPE_FP32, dims: [1, 2], zero_data: true}]'),
      'state[0].initial_state[0].name is missing.',
    ],
    [
      withState(', initial_state: [{name: a, data_type: TYPE_FP16, dims: [1, 2], zero_data: true}]'),
      'initial_state[0].data_type is TYPE_FP16; TYPE_FP32, the type of the state, is expected.',
    ],
    [
      withState(', initial_state: [{name: a, data_type: TYPE_FP32, dims: [1], zero_data: true}]'),
      'initial_state[0].dims is [1]; sizes as those of the state, [-1,2], are expected, and none of -1.',
    ],
    [
      withState(', initial_state: [{name: a, data_type: TYPE_FP32, dims: [-1, 2], zero_data: true}]'),
      'initial_state[0].dims is [-1,2]; sizes',
    ],
    [
      withState(', initial_state: [{name: a, data_type: TYPE_FP32, dims: [1, 3], zero_data: true}]'),
      'initial_state[0].dims is [1,3]; sizes',
    ],
    [
      withState(', initial_state: [{name: a, data_type: TYPE_FP32, dims: [1, 2]}]'),
      'initial_state[0] has no data: zero_data or data_file is expected.',
    ],
    [initial('zero_data: true, data_file: a'), 'data_file and zero_data exclude each other'],
    [
      initial('data_file: ../a'),
      'data_file is "../a"; a file below initial_state/ in the model\'s folder is expected.',
    ],
    [initial('data_file: /etc/passwd'), 'data_file is "/etc/passwd"; a file below'],
    [initial('data_file: ""'), 'data_file is ""; a file below'],
    [initial('data_file: "a\\\\b"'), 'a file below'],
  ])('has states that make sense: %s', (text, expected) => {
    expect(() => complete(IO + text)).toThrow(expected);
  });

  it('takes a state that is an output too, and files in folders below initial_state', () => {
    const output =
      'input: [{name: I, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: T, data_type: TYPE_FP32, dims: [-1, 2]}]\n';
    expect(complete(output + withState('')).output).toHaveLength(1);
    expect(
      complete(IO + initial('data_file: a/b')).sequence_batching!.state[0]!.initial_state[0]!.data_file,
    ).toBe('a/b');
  });
});

describe("what a model's file tells beside sequence_batching", () => {
  const tensor = (name: string, data_type: DataType, dims = [1]) => ({
    name,
    data_type,
    dims,
    is_shape_tensor: false,
  });
  const input = (name: string, type: DataType) => ({
    ...tensor(name, type),
    allow_ragged_batch: false,
    optional: false,
  });
  const output = (name: string, type: DataType) => ({ ...tensor(name, type), label_filename: '' });
  const told: Told = {
    max_batch_size: 8,
    input: [input('I', 'TYPE_INT32'), input('START', 'TYPE_FP32'), input('S', 'TYPE_FP32')],
    output: [output('O', 'TYPE_INT32'), output('T', 'TYPE_FP32')],
  };
  const both = (control_input: string, state: string) =>
    `sequence_batching: {control_input: [${control_input}], state: [{${state}}]}`;
  const whole = both(START, 'input_name: S, output_name: T, data_type: TYPE_FP32, dims: [1]');

  it('are the inputs and outputs of clients without controls and states', () => {
    const config = complete(whole, told);
    expect(config.input.map(({ name }) => name)).toEqual(['I']);
    expect(config.output.map(({ name }) => name)).toEqual(['O']);
    expect(config.max_batch_size).toBe(8);
  });

  it('has a state among the outputs where its author lists it', () => {
    const config = complete(`${whole}\noutput: [{name: T, data_type: TYPE_FP32, dims: [1]}]`, told);
    expect(config.output.map(({ name }) => name)).toEqual(['T']);
  });

  it.each([
    [
      'sequence_batching: {}\ninput: [{name: I, data_type: TYPE_INT32, dims: [1]}]',
      "c:2: input lacks 'START', which the model's file needs.",
    ],
    [
      both(control('BEGIN', 'kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]'), STATE),
      "c:1: sequence_batching.control_input[0].name is 'BEGIN', which the model's file does not have; it has 'I', 'START', 'S'.",
    ],
    [
      both(control('START', 'kind: CONTROL_SEQUENCE_START, int32_false_true: [0, 1]'), STATE),
      "control_input[0].name is 'START' of TYPE_INT32; the model's file has TYPE_FP32.",
    ],
    [
      both(START, 'input_name: X, output_name: T, data_type: TYPE_FP32, dims: [1]'),
      "state[0].input_name is 'X', which the model's file does not have",
    ],
    [
      both(START, 'input_name: S, output_name: X, data_type: TYPE_FP32, dims: [1]'),
      "state[0].output_name is 'X', which the model's file does not have; it has 'O', 'T'.",
    ],
    [
      both(START, 'input_name: S, output_name: T, data_type: TYPE_INT32, dims: [1]'),
      "state[0].input_name is 'S' of TYPE_INT32; the model's file has TYPE_FP32.",
    ],
  ])('may not be contradicted: %s', (text, expected) => {
    expect(() => complete(text, told)).toThrow(expected);
  });
});
