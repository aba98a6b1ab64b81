import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig, type Told } from '../../../models/repository/complete-config.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { type InstanceKind, ownParameters } from '../../../models/repository/model-parameters.js';
import { parseModelConfig } from '../../../models/repository/read-model-config.js';

const tensor = { is_shape_tensor: false };
const TOLD: Told = {
  max_batch_size: 4,
  input: [
    { name: 'I', data_type: 'TYPE_INT32', dims: [16], allow_ragged_batch: false, optional: false, ...tensor },
  ],
  output: [{ name: 'O', data_type: 'TYPE_FP32', dims: [-1], label_filename: '', ...tensor }],
};
const IO =
  'input: [{name: I, data_type: TYPE_INT32, dims: [16]}]\noutput: [{name: O, data_type: TYPE_FP32, dims: [-1]}]\n';

function complete(text: string | null, told: Told = {}): ModelConfig {
  const written = text === null ? null : parseModelConfig(text, 'c', 'yaml');
  const facts = { name: 'm', folder: 'm', backend: 'b', defaultFilename: 'model.x', told };
  const config = completeConfig(written, facts);
  checkConfig(config, written ?? parseModelConfig('', 'c', 'yaml'));
  return config;
}

const limiter = (resources: string) => `instance_group: [{rate_limiter: {resources: [${resources}]}}]`;

describe('a configuration that is completed', () => {
  it('is told by the files where nothing was written, with batches formed by themselves', () => {
    expect(complete(null, TOLD)).toMatchObject({
      name: 'm',
      backend: 'b',
      max_batch_size: 4,
      input: TOLD.input,
      output: TOLD.output,
      instance_group: [{ name: 'm_0', kind: 'KIND_CPU', count: 1 }],
      version_policy: { latest: { num_versions: 1 } },
      dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 0 },
      default_model_filename: 'model.x',
    });
  });

  it('is what its author wrote, with defaults for the rest', () => {
    const config = complete(
      `${IO}max_batch_size: 8\ndynamic_batching: {max_queue_delay_microseconds: 100}`,
      TOLD,
    );
    expect(config.max_batch_size).toBe(8);
    expect(config.dynamic_batching).toEqual({
      preferred_batch_size: [8],
      max_queue_delay_microseconds: 100,
      preserve_ordering: false,
      priority_levels: 0,
      default_priority_level: 0,
      default_queue_policy: {
        timeout_action: 'REJECT',
        default_timeout_microseconds: 0,
        allow_timeout_override: false,
        max_queue_size: 0,
      },
      priority_queue_policy: {},
    });
    expect(complete(`${IO}max_batch_size: 8`, TOLD).dynamic_batching).toBeUndefined();
  });

  it.each([
    ['name: other', "c:1: name is 'other'; 'm', the name of the folder, is expected"],
    [
      'input: [{name: X, data_type: TYPE_INT32, dims: [16]}]',
      "input[0] is 'X', which the model's file does not have; it has 'I'",
    ],
    [
      'input: [{name: I, data_type: TYPE_INT64, dims: [16]}]',
      "input[0].data_type is TYPE_INT64; the model's file has TYPE_INT32",
    ],
    [
      'input: [{name: I, data_type: TYPE_INT32, dims: [15]}]',
      "input[0].dims is [15]; the model's file has [16]",
    ],
    [
      'output: [{name: O, data_type: TYPE_FP32, dims: [1, 2]}]',
      "output[0].dims is [1,2]; the model's file has [-1]",
    ],
  ])('may not contradict the files: %s', (text, expected) => {
    expect(() => complete(text, TOLD)).toThrow(expected);
  });

  it.each([
    ['max_batch_size: -1', 'max_batch_size is -1; a whole number from 0 to 65536 is expected'],
    ['max_batch_size: 70000', 'max_batch_size is 70000'],
    ['ensemble_scheduling: {}', "c:3: must specify 'step' for ensemble 'm'"],
    ['max_batch_size: 0\ndynamic_batching: {}', 'c:4: dynamic_batching needs a max_batch_size of at least 1'],
    [
      'max_batch_size: 2\ndynamic_batching: {preferred_batch_size: [1, 3]}',
      'preferred_batch_size[1] is 3; a whole number from 1 to 2',
    ],
    [
      'max_batch_size: 2\ndynamic_batching: {priority_levels: 2}',
      'default_priority_level is 0; a whole number from 1 to 2',
    ],
    [
      'max_batch_size: 2\ndynamic_batching: {default_priority_level: 1}',
      'is 1, but priority_levels is not given',
    ],
    [
      'max_batch_size: 2\ndynamic_batching: {priority_levels: 2, default_priority_level: 1, priority_queue_policy: {3: {}}}',
      'dynamic_batching.priority_queue_policy.3 is of no level',
    ],
    [
      'max_batch_size: 2\ndynamic_batching: {priority_levels: 2, default_priority_level: 1, preserve_ordering: true}',
      'preserve_ordering excludes priority_levels',
    ],
    ['instance_group: [{kind: KIND_GPU}]', 'instance_group[0].kind is KIND_GPU'],
    ['instance_group: [{count: 65}]', 'instance_group[0].count is 65'],
    ['instance_group: [{count: 40}, {count: 40}]', 'instance_group asks for 80 instances'],
    [limiter('{count: 1}'), 'rate_limiter.resources[0].name is missing'],
    [limiter('{name: R}'), 'rate_limiter.resources[0].count is missing; a whole number from 1 is expected'],
    [
      limiter('{name: R, count: 1}, {name: R, count: 2}'),
      "resources[1].name is 'R', which the group names twice",
    ],
    [limiter('{name: R, count: -1}'), 'count'],
    [
      limiter(Array.from({ length: 65 }, (_, i) => `{name: R${i}, count: 1}`).join(', ')),
      'rate_limiter.resources names 65 resources; at most 64 are taken',
    ],
    [limiter(`{name: ${'R'.repeat(129)}, count: 1}`), 'name has 129 characters; at most 128 are taken'],
    ['default_model_filename: ../x', 'default_model_filename is "../x"; the name of a file'],
    ['version_policy: {specific: {}}', 'version_policy.specific.versions names no version'],
    ['version_policy: {latest: {num_versions: 0}}', 'num_versions must be at least 1'],
    ['parameters: {a: {}}', 'parameters.a has no string_value'],
  ])('is held against the rules: %s', (text, expected) => {
    expect(() => complete(IO + text)).toThrow(expected);
  });

  it.each([
    ['input: []', 'input is missing'],
    ['input: [{name: "", data_type: TYPE_INT32, dims: [1]}]', 'input[0].name is missing'],
    ['input: [{name: a, dims: [1]}]', 'input[0].data_type is missing'],
    [
      'input: [{name: a, data_type: TYPE_INT32, dims: [1], format: FORMAT_NHWC}]',
      'input[0].format is FORMAT_NHWC, which has 3 dims; it has 1',
    ],
    ['input: [{name: a, data_type: TYPE_INT32}]', 'input[0].dims is missing'],
    ['input: [{name: a, data_type: TYPE_INT32, dims: [0]}]', 'input[0].dims has 0; sizes from 1'],
    [
      'input: [{name: a, data_type: TYPE_INT32, dims: [1]}, {name: a, data_type: TYPE_INT32, dims: [1]}]',
      "input[1].name is 'a', the name of another input",
    ],
    [
      'input: [{name: a, data_type: TYPE_INT32, dims: [6], reshape: {shape: [2, 2]}}]',
      'they must have as many elements',
    ],
    [
      'input: [{name: a, data_type: TYPE_INT32, dims: [-1], reshape: {shape: [2]}}]',
      'they must have as many sizes of -1',
    ],
    [
      'input: [{name: a, data_type: TYPE_INT32, dims: [1], is_shape_tensor: true}]',
      'no backend here has shape tensors',
    ],
  ])('has tensors that make sense: %s', (text, expected) => {
    expect(() => complete(text, { output: TOLD.output! })).toThrow(expected);
  });

  it("is of its backend's platform where it does not name one", () => {
    const platformOf = (text: string) => {
      const facts = {
        name: 'm',
        folder: 'm',
        backend: 'b',
        platform: 'b_x',
        defaultFilename: 'x',
        told: TOLD,
      };
      return completeConfig(parseModelConfig(text, 'c', 'yaml'), facts).platform;
    };
    expect([platformOf(''), platformOf('platform: ""'), platformOf('platform: other')]).toEqual([
      'b_x',
      'b_x',
      'other',
    ]);
    expect(complete(null, TOLD).platform).toBe('');
  });

  it.each([
    ['yaml', 'input: [{name: I, data_type: TYPE_INT32, dims: [1], reshape: {shape: []}}]'],
    ['yaml', 'input: [{name: I, data_type: TYPE_INT32, dims: [1], reshape: {}}]'],
    ['pbtxt', 'input [{ name: "I" data_type: TYPE_INT32 dims: [1] reshape: { shape: [ ] } }]'],
  ] as const)('may reshape to a single number: %s %s', (format, text) => {
    const scalar = { ...TOLD.input![0]!, dims: [1], reshape: { shape: [] } };
    const facts = {
      name: 'm',
      folder: 'm',
      backend: 'b',
      defaultFilename: 'x',
      told: { ...TOLD, input: [scalar] },
    };
    const written = parseModelConfig(text, 'c', format);
    const config = completeConfig(written, facts);
    checkConfig(config, written);
    expect(config.input).toMatchObject([{ name: 'I', dims: [1], reshape: { shape: [] } }]);
  });

  it('has parameters of this server', () => {
    const read = (text: string, kind: InstanceKind = 'thread') => {
      const written = parseModelConfig(IO + text, 'c', 'yaml');
      return ownParameters(complete(IO + text), written, { instanceKind: kind });
    };
    expect(read('')).toEqual({
      executeTimeoutMs: 0,
      initializeTimeoutMs: 300_000,
      instanceKind: 'thread',
      maxStateBytes: 2 ** 30,
    });
    expect(read('', 'process').instanceKind).toBe('process');
    expect(read('parameters: {instance_kind: thread}', 'process').instanceKind).toBe('thread');
    const both =
      'parameters: {execute_timeout_ms: {string_value: "500"}, instance_kind: {string_value: process}}';
    expect(read(both)).toMatchObject({ executeTimeoutMs: 500, instanceKind: 'process' });
    expect(() => read('parameters: {initialize_timeout_ms: {string_value: "3600001"}}')).toThrow(
      'c:3: parameters.initialize_timeout_ms is "3600001"; a whole number of milliseconds up to 3600000',
    );
    expect(() => read('parameters: {execute_timeout_ms: {string_value: "5s"}}')).toThrow(
      'c:3: parameters.execute_timeout_ms is "5s"; a whole number of milliseconds',
    );
    expect(read('parameters: {max_state_bytes: {string_value: "4096"}}').maxStateBytes).toBe(4096);
    expect(() => read('parameters: {max_state_bytes: {string_value: "0"}}')).toThrow(
      'parameters.max_state_bytes is "0"; a whole number of bytes from 1 to 1099511627776 is expected',
    );
    expect(() => read('parameters: {instance_kind: {string_value: gpu}}')).toThrow("'thread' or 'process'");
  });
});
