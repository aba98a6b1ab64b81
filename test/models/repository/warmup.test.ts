import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig } from '../../../models/repository/complete-config.js';
import { parseModelConfig } from '../../../models/repository/read-model-config.js';

const IO = `max_batch_size: 8
input: [{name: X, data_type: TYPE_FP32, dims: [-1, 3]}, {name: Z, data_type: TYPE_INT32, dims: [1], optional: true}]
output: [{name: Y, data_type: TYPE_FP32, dims: [1]}]
`;
const X = 'X: {data_type: TYPE_FP32, dims: [2, 3], zero_data: true}';

function read(text: string, io = IO) {
  const written = parseModelConfig(io + text, 'c.yaml', 'yaml');
  const facts = { name: 'm', folder: 'm', backend: 'module', defaultFilename: 'model.mjs', told: {} };
  const config = completeConfig(written, facts);
  checkConfig(config, written);
  return config.model_warmup;
}

describe('samples of a configuration', () => {
  it('are completed', () => {
    expect(read(`model_warmup: [{name: s, inputs: {${X}}}]`)).toEqual([
      {
        name: 's',
        batch_size: 0,
        count: 0,
        inputs: { X: { data_type: 'TYPE_FP32', dims: [2, 3], zero_data: true } },
      },
    ]);
    expect(read('')).toEqual([]);
  });

  it.each([
    [`[{name: s, batch_size: 9, inputs: {${X}}}]`, 'model_warmup[0].batch_size is 9; a whole number up to 8'],
    [`[{batch_size: 1, inputs: {${X}}}]`, 'model_warmup[0].name is missing'],
    ['[{name: s, batch_size: 1}]', "model_warmup[0].inputs lack 'X', which the model needs"],
    [
      `[{name: s, inputs: {${X}, Q: {data_type: TYPE_FP32, dims: [1], zero_data: true}}}]`,
      "inputs.Q is no input of the model; it has 'X', 'Z'",
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP64, dims: [2, 3], zero_data: true}}}]',
      'inputs.X.data_type is TYPE_FP64; the input is of TYPE_FP32',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [2, 4], zero_data: true}}}]',
      'inputs.X.dims is [2,4]; the input has [-1,3]',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [3], zero_data: true}}}]',
      'inputs.X.dims is [3]; the input has [-1,3]',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [-1, 3], zero_data: true}}}]',
      'inputs.X.dims has -1; a sample says all its sizes',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [2, 3]}}}]',
      'inputs.X has no data: zero_data, random_data or input_data_file',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [2, 3], zero_data: false}}}]',
      'inputs.X has no data',
    ],
    [
      '[{name: s, inputs: {X: {data_type: TYPE_FP32, dims: [2, 3], input_data_file: ../x}}}]',
      'input_data_file is "../x"; the name of a file in the folder warmup',
    ],
    [
      '[{name: s, batch_size: 8, inputs: {X: {data_type: TYPE_FP32, dims: [3000000, 3], zero_data: true}}}]',
      'inputs take 288000000 bytes; at most 268435456',
    ],
    [`[{name: s, count: 10001, inputs: {${X}}}]`, 'model_warmup asks for 10001 runs; at most 10000'],
    [`[${Array(65).fill(`{name: s, inputs: {${X}}}`)}]`, 'model_warmup has 65 samples; at most 64'],
    ['[{name: s, inputs: {X: {zero_data: true, random_data: true}}}]', 'exclude each other'],
  ])('are held against its inputs and the bounds: %s', (text, expected) => {
    expect(() => read(`model_warmup: ${text}`)).toThrow(expected);
  });

  it('are told with file and line', () => {
    expect(() => read(`model_warmup: [\n  {name: s, inputs: {${X}}},\n  {name: t, batch_size: 20}]`)).toThrow(
      /^c\.yaml:6: model_warmup\[1\]\.batch_size is 20/,
    );
  });

  it('may have inputs that the server gives to models of sequences', () => {
    const text = `sequence_batching: {control_input: [{name: START, control: [{kind: CONTROL_SEQUENCE_START, int32_false_true: [0, 1]}]}]}
model_warmup: [{name: s, batch_size: 1, inputs: {${X}, START: {data_type: TYPE_INT32, dims: [1], zero_data: true}}}]`;
    expect(() => read(text)).not.toThrow(/START/);
    expect(() => read(text.replace('START: {d', 'STOP: {d'))).toThrow();
  });
});
