import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { ModelConfigError } from '../../../models/repository/model-config-error.js';
import {
  parseModelConfig,
  parseSentConfig,
  readModelConfig,
} from '../../../models/repository/read-model-config.js';
import { draws } from '../../support/scale.js';

const folder = mkdtempSync(join(tmpdir(), 'skein-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PBTXT = `
# A comment with { braces.
name: "simple"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  {
    name: 'INPUT1'  # of the same shape
    data_type: TYPE_INT32
    dims: [ -1, 16 ]
  }
]
output { name: "OUTPUT0" data_type: TYPE_STRING dims: 16 }
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
version_policy: { specific: { versions: [ 1, 3 ] } }
parameters { key: "a" value: { string_value: "b" } }
instance_group [ { count: 2 kind: KIND_CPU } ]
`;

const FIELDS = {
  name: 'simple',
  platform: 'onnxruntime_onnx',
  max_batch_size: 8,
  input: [
    { name: 'INPUT0', data_type: 'TYPE_INT32', dims: [16] },
    { name: 'INPUT1', data_type: 'TYPE_INT32', dims: [-1, 16] },
  ],
  output: [{ name: 'OUTPUT0', data_type: 'TYPE_STRING', dims: [16] }],
  dynamic_batching: { preferred_batch_size: [4, 8], max_queue_delay_microseconds: 100 },
  version_policy: { specific: { versions: [1, 3] } },
  parameters: { a: { string_value: 'b' } },
  instance_group: [{ count: 2, kind: 'KIND_CPU' }],
};

describe('a configuration', () => {
  it.each([
    ['pbtxt', PBTXT],
    ['yaml', JSON.stringify(FIELDS)],
    ['yaml', stringify(FIELDS)],
  ] as const)('is the same in each format: %s', (format, text) => {
    expect(parseModelConfig(text, 'c', format).fields).toEqual(FIELDS);
  });

  it('has parameters as plain values too, in YAML and JSON', () => {
    const text = 'parameters: { a: 500, b: process, c: true, d: 1.5, e: { string_value: "x" }, f: "" }';
    const values = { a: '500', b: 'process', c: 'true', d: '1.5', e: 'x', f: '' };
    const parameters = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, { string_value: value }]),
    );
    expect(parseModelConfig(text, 'c', 'yaml').fields).toEqual({ parameters });
    const json = JSON.stringify({ parameters: { a: 500, b: 'process', c: true, d: 1.5, e: 'x', f: '' } });
    expect(parseSentConfig(json).fields).toEqual({ parameters });
  });

  it('of a request is JSON', () => {
    expect(() => parseSentConfig('max_batch_size: 4')).toThrow(
      /^the configuration of the request is no JSON: Unexpected token .*\.$/,
    );
    expect(() => parseSentConfig('{"max_batch_size": 4,}')).toThrow('is no JSON');
  });

  it('that is broken puts no warning on the console', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    try {
      expect(() => parseModelConfig('? {a: b}\n: 3', 'c', 'yaml')).toThrow(ModelConfigError);
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
    }
  });

  it('knows the lines of its fields', () => {
    const lineIn = (format: 'pbtxt' | 'yaml', text: string, ...path: (string | number)[]) =>
      parseModelConfig(text, 'c', format).lineOf(path);
    expect(lineIn('pbtxt', PBTXT, 'max_batch_size')).toBe(5);
    expect(lineIn('pbtxt', PBTXT, 'input', 0, 'dims')).toBe(7);
    expect(lineIn('pbtxt', PBTXT, 'input', 1, 'data_type')).toBe(10);
    expect(lineIn('pbtxt', PBTXT, 'dynamic_batching', 'preferred_batch_size', 1)).toBe(15);
    expect(lineIn('pbtxt', PBTXT, 'response_cache')).toBeNull();
    const json = JSON.stringify(FIELDS, null, 1);
    expect(lineIn('yaml', json, 'max_batch_size')).toBe(4);
    expect(json.split('\n')[lineIn('yaml', json, 'input', 1, 'name')! - 1]).toContain('INPUT1');
  });

  it.each([
    ['pbtxt', 'nme: "x"', "c:1: ModelConfig: unknown field 'nme'"],
    ['pbtxt', 'name: "x"\nmax_batch_size: 1.5', 'c.*integer'],
    ['pbtxt', 'name: "x"\ninput [ { name: "a" dims: [1 }', "c:2: expected '\\]'"],
    ['pbtxt', 'name: "a', 'c:1: unterminated string'],
    ['pbtxt', `${'input { '.repeat(40)}`, 'c has more than 32 messages within messages'],
    ['yaml', '{"nme": "x"}', 'c:1: nme is no field here; name may be meant'],
    ['yaml', 'name: x\nmax_batch_size: 1.5', 'c:2: max_batch_size is 1.5; a whole number from'],
    [
      'yaml',
      'name: x\ninput:\n- name: a\n  data_type: TYPE_FOO',
      'c:4: input\\[0\\].data_type is "TYPE_FOO"; .*one of TYPE_BOOL, .* is expected',
    ],
    ['yaml', 'input: [{data_type: TYPE_FLOAT32}]', 'is "TYPE_FLOAT32"; TYPE_FP32 may be meant: one of'],
    ['yaml', 'input: [{data_type: double}]', 'is "double"; TYPE_FP64 may be meant: one of'],
    [
      'pbtxt',
      '# data_type: TYPE_X\ninput [ { name: "a"\n data_type: TYPE_FLOAT32 } ]',
      'c:3: data_type is "TYPE_FLOAT32"; TYPE_FP32 may be meant: one of TYPE_BOOL, .* is expected.$',
    ],
    [
      'pbtxt',
      'max_batch_size: 2\ninput { data_type: "TYPE_FP32" }',
      'c:2: data_type is a text in quotes; TYPE_FP32 without them is expected.$',
    ],
    ['yaml', 'max_batch_size: x', 'c:1: max_batch_size is "x"; a whole number is expected'],
    ['yaml', 'name: 5', 'c:1: name is 5; a text is expected'],
    ['yaml', 'input: 5', 'c:1: input\\[0\\] is 5; an object is expected'],
    ['yaml', 'parameters: [1]', 'c:1: parameters is a list of 1; an object is expected'],
    ['yaml', 'parameters: {a: [1]}', 'c:1: parameters.a is a list of 1; a text, a number, true, false or'],
    ['yaml', 'parameters: {a: 12345678901234567890}', 'c:1: parameters.a is 12345678901234567000; a text'],
    ['yaml', 'parameters: {a: .inf}', 'c:1: parameters.a is Infinity; a text, a number'],
    ['yaml', 'model_transaction_policy: {decoupled: 1}', 'decoupled is 1; true or false is expected'],
    [
      'yaml',
      'dynamic_batching: {}\nensemble_scheduling: {}',
      'ensemble_scheduling and dynamic_batching exclude',
    ],
    ['yaml', 'max_batch_size: 1\nmax_batch_size: 2', 'c:2: '],
    ['yaml', '{', 'c:1: Flow map must end with a }.$'],
    ['yaml', 'input: [\n', 'c:2: Flow sequence .* end with a \\].$'],
    ['yaml', '? {a: b}\n: 3', 'c: { a: b } is no field here'],
    ['yaml', '[1]', 'c is a list of 1; an object is expected'],
    ['yaml', 'a: &a [1]\nb: *a', 'c: '],
    [
      'yaml',
      'dynamic_batching: {max_queue_delay_microseconds: "18446744073709551616"}',
      'is "18446744073709551616"; a whole number from 0 to 18446744073709551615 is expected',
    ],
    ['yaml', 'dynamic_batching: {max_queue_delay_microseconds: 2e19}', 'from 0 to 18446744073709551615'],
    ['yaml', 'dynamic_batching: {max_queue_delay_microseconds: -1}', 'from 0 to 18446744073709551615'],
    [
      'yaml',
      'input: [{dims: [9007199254740993]}]',
      'is 9007199254740992; a whole number from -9007199254740991',
    ],
  ] as const)('of %s that is wrong is refused with the place: %s', (format, text, expected) => {
    const call = () => parseModelConfig(text, 'c', format);
    expect(call).toThrow(ModelConfigError);
    expect(call).toThrow(new RegExp(expected));
  });

  it.each([
    ['pbtxt', 'dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }'],
    ['yaml', 'dynamic_batching: {max_queue_delay_microseconds: 18446744073709551615}'],
    ['yaml', '{"dynamic_batching": {"max_queue_delay_microseconds": "18446744073709551615"}}'],
  ] as const)('of %s takes delays of up to 2^64 - 1: %s', (format, text) => {
    const delay = parseModelConfig(text, 'c', format).fields.dynamic_batching!.max_queue_delay_microseconds;
    expect(delay).toBe(2 ** 64 - 2 ** 11);
    // What is answered is a uint64 again.
    expect(BigInt(JSON.stringify(delay))).toBeLessThan(2n ** 64n);
  });

  it('of a request is short', () => {
    const sent = (length: number) => `{"name":"${'x'.repeat(length - 11)}"}`;
    expect(parseSentConfig(sent(2 ** 16)).fields.name).toHaveLength(2 ** 16 - 11);
    expect(() => parseSentConfig(sent(2 ** 16 + 1))).toThrow(
      'the configuration of the request has 65537 bytes; at most 65536 are taken.',
    );
  });

  it.each([
    ['lists', '['.repeat(500_000)],
    ['objects', '{"a":'.repeat(100_000)],
    ['lists that end', `parameters: ${'['.repeat(201)}${']'.repeat(201)}`],
    ['lines', '- '.repeat(400_000)],
    ['keys', '? '.repeat(400_000)],
    ['lines, each further in', Array.from({ length: 900 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
  ])('that is nested deep is refused before it is read, in %s', (_, text) => {
    expect(() => parseModelConfig(text, 'c', 'yaml')).toThrow('c is nested more than 200 deep.');
  });

  it('is one file of a folder, or none', () => {
    expect(readModelConfig(folder)).toBeNull();
    writeFileSync(join(folder, 'config.pbtxt'), PBTXT);
    expect(readModelConfig(folder)!.fields).toEqual(FIELDS);
    writeFileSync(join(folder, 'config.json'), '{}');
    expect(() => readModelConfig(folder)).toThrow('has both config.pbtxt and config.json');
    rmSync(join(folder, 'config.json'));
    writeFileSync(join(folder, 'config.pbtxt'), ' '.repeat(2 ** 20 + 1));
    expect(() => readModelConfig(folder)).toThrow('1048577 bytes; at most 1048576');
  });

  it('that was mutated is read or refused, and nothing else', () => {
    const texts = [PBTXT, stringify(FIELDS), JSON.stringify(FIELDS)];
    const mutation = fc.record({
      which: fc.nat(2),
      at: fc.nat(1000),
      remove: fc.nat(30),
      insert: fc.oneof(
        fc.string({ maxLength: 8 }),
        fc.constantFrom('{', '[', '<', '"', '*', '&a', '-1', '\n'),
      ),
    });
    fc.assert(
      fc.property(mutation, ({ which, at, remove, insert }) => {
        const text = texts[which]!;
        const place = at % text.length;
        const mutated = text.slice(0, place) + insert + text.slice(place + remove);
        try {
          parseModelConfig(mutated, 'c', which === 0 ? 'pbtxt' : 'yaml');
        } catch (error) {
          expect(error).toBeInstanceOf(ModelConfigError);
        }
      }),
      { numRuns: draws(200) },
    );
  });
});
