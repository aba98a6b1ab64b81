import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig, type Told } from '../../../models/repository/complete-config.js';
import { parseModelConfig } from '../../../models/repository/read-model-config.js';

const X = '{name: X, data_type: TYPE_FP32, dims: [-1], allow_ragged_batch: true}';
const COUNT = '{kind: BATCH_ELEMENT_COUNT, target_name: [N], data_type: TYPE_INT32, source_input: [X]}';

function checked(
  more: string,
  { size = 4, inputs = X, told = {} }: { size?: number; inputs?: string; told?: Told } = {},
) {
  const text = `max_batch_size: ${size}\ninput: [${inputs}]\noutput: [{name: Y, data_type: TYPE_FP32, dims: [-1]}, {name: Z, data_type: TYPE_FP32, dims: [2, -1]}]\n${more}\n`;
  const written = parseModelConfig(text, 'c', 'yaml');
  const facts = { name: 'm', folder: 'm', backend: 'module', defaultFilename: '', told };
  const config = completeConfig(written, facts);
  checkConfig(config, written);
  return config;
}

/** An input of a file, without the batch dimension. */
const told = (name: string, dims: number[], data_type: 'TYPE_INT32' | 'TYPE_FP32' = 'TYPE_FP32') => ({
  name,
  data_type,
  ...(dims.length === 0 ? { dims: [1], reshape: { shape: [] } } : { dims }),
  is_shape_tensor: false,
  allow_ragged_batch: false,
  optional: false,
});
const outputs = (y: number[]) =>
  [told('Y', y), told('Z', [2, -1])].map((one) => ({ ...one, label_filename: '' }));

describe('batch inputs and outputs', () => {
  it('have every field, in the complete configuration', () => {
    const { batch_input, batch_output } = checked(
      'batch_input: [{target_name: [N, M], data_type: TYPE_INT32, source_input: [X]}]\nbatch_output: [{target_name: [Y], source_input: [X]}]',
    );
    expect(batch_input).toEqual([
      { kind: 'BATCH_ELEMENT_COUNT', target_name: ['N', 'M'], data_type: 'TYPE_INT32', source_input: ['X'] },
    ]);
    expect(batch_output).toEqual([
      { kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE', target_name: ['Y'], source_input: ['X'] },
    ]);
  });

  const optional = '{name: X, data_type: TYPE_FP32, dims: [-1], optional: true}';
  it.each([
    ['batch_input: [{data_type: TYPE_INT32, source_input: [X]}]', 'batch_input[0].target_name is missing'],
    [
      'batch_input: [{target_name: [N], source_input: [X]}]',
      'batch_input[0].data_type is TYPE_INVALID; TYPE_INT32 or TYPE_FP32 is expected.',
    ],
    [
      'batch_input: [{target_name: [N], data_type: TYPE_INT64, source_input: [X]}]',
      'batch_input[0].data_type is TYPE_INT64; TYPE_INT32 or TYPE_FP32 is expected.',
    ],
    [
      'batch_input: [{target_name: [N], data_type: TYPE_INT32}]',
      'batch_input[0].source_input names 0 inputs; kind BATCH_ELEMENT_COUNT takes 1.',
    ],
    [
      'batch_input: [{target_name: [N], data_type: TYPE_INT32, source_input: [W]}]',
      "batch_input[0].source_input[0] is 'W', which is no input; 'X' is expected.",
    ],
    [
      'batch_input: [{target_name: [X], data_type: TYPE_INT32, source_input: [X]}]',
      "batch_input[0].target_name[0] is 'X', the name of an input too.",
    ],
    [
      'batch_input: [{target_name: [N, N], data_type: TYPE_INT32, source_input: [X]}]',
      "batch_input[0].target_name[1] is 'N', the name of another batch input too.",
    ],
    [
      "batch_input: [{target_name: [''], data_type: TYPE_INT32, source_input: [X]}]",
      "batch_input[0].target_name[0] is ''; the name of an input is expected.",
    ],
    [
      `batch_input: [{target_name: [${Array.from({ length: 65 }, (_, i) => `N${i}`)}], data_type: TYPE_INT32, source_input: [X]}]`,
      'batch_input names 65 tensors; at most 64 are taken.',
    ],
    ['batch_output: [{source_input: [X]}]', 'batch_output[0].target_name is missing'],
    [
      'batch_output: [{target_name: [X], source_input: [X]}]',
      "batch_output[0].target_name[0] is 'X', which is no output; 'Y' or 'Z' is expected.",
    ],
    [
      'batch_output: [{target_name: [Y, Y], source_input: [X]}]',
      "batch_output[0].target_name[1] is 'Y', which is split already.",
    ],
    [
      'batch_output: [{target_name: [Z], source_input: [X]}]',
      "batch_output[0].target_name[0] is 'Z' with the dims [2,-1]; its source_input 'X' has 1 sizes, which is too few for the -1 at the end.",
    ],
  ])('%s is refused', (more, sentence) => {
    expect(() => checked(more)).toThrow(sentence);
  });

  it('are refused of an optional source, without batches, and of an ensemble', () => {
    expect(() => checked(`batch_input: [${COUNT}]`, { inputs: optional })).toThrow(
      "batch_input[0].source_input[0] is 'X', which is optional: each request has to have it.",
    );
    expect(() => checked(`batch_input: [${COUNT}]`, { size: 0 })).toThrow(
      'batch_input needs a max_batch_size of at least 1: this model takes no batches.',
    );
    expect(() => checked('', { size: 0 })).toThrow(
      'input[0].allow_ragged_batch needs a max_batch_size of at least 1',
    );
    expect(() => checked(`ensemble_scheduling: {step: []}\nbatch_input: [${COUNT}]`)).toThrow(
      'batch_input is given: an ensemble forms no batches; its steps do.',
    );
  });
});

describe('a file with lists of elements', () => {
  const given = { told: { input: [told('X', []), told('N', [], 'TYPE_INT32')], output: outputs([]) } };
  const scattered = `batch_input: [${COUNT}]\nbatch_output: [{target_name: [Y], source_input: [X]}]`;

  it('is what the configuration shows in sizes of its own', () => {
    const config = checked(scattered, given);
    expect(config.input.map(({ name, dims }) => [name, dims])).toEqual([['X', [-1]]]);
    expect(config.output[0]).toMatchObject({ name: 'Y', dims: [-1] });
  });

  const withInputs = (...list: ReturnType<typeof told>[]) => ({ told: { input: list, output: outputs([]) } });
  it.each([
    [
      withInputs(told('X', [-1]), told('N', [], 'TYPE_INT32')),
      "input[0].allow_ragged_batch is true for 'X', which has the shape [-1,-1] in the model's file; [-1], a list of the elements of all requests, is expected.",
    ],
    [
      withInputs(told('X', [])),
      "batch_input[0].target_name[0] is 'N', which the model's file does not have; it has 'X'.",
    ],
    [
      withInputs(told('X', []), told('N', [])),
      "batch_input[0].target_name[0] is 'N' of TYPE_INT32; the model's file has TYPE_FP32.",
    ],
    [
      withInputs(told('X', []), told('N', [-1], 'TYPE_INT32')),
      "batch_input[0].target_name[0] is 'N', which has 2 dimensions in the model's file; BATCH_ELEMENT_COUNT has 1.",
    ],
    [withInputs(told('X', []), told('N', [], 'TYPE_INT32'), told('W', [])), "input lacks 'W'"],
  ])('that says something else is refused', (file, sentence) => {
    expect(() => checked(scattered, file)).toThrow(sentence);
  });
});
