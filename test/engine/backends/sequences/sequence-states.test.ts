import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { packElements } from '../../../../callbacks/infer/byte-elements.js';
import { SequenceStates } from '../../../../engine/backends/sequences/sequence-states.js';
import { checkInitialStates, readStates } from '../../../../engine/backends/sequences/state-tensors.js';
import { parseModelConfig } from '../../../../models/repository/read-model-config.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { int32, numbers, sequenceConfig } from '../support/sequence-models.js';

const folder = temporaryFolder('skein-states-');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(folder, 'initial_state/deep'), { recursive: true });
const write = (name: string, bytes: Uint8Array) => writeFileSync(join(folder, 'initial_state', name), bytes);
write('data', new Uint8Array(Int32Array.of(100, 200, 300).buffer));
write('deep/data', new Uint8Array(Int32Array.of(7).buffer));
write('short', new Uint8Array(3));
write('texts', packElements(['a', 'bc']));
write('cut', Uint8Array.of(9, 0, 0, 0, 1));

const state = (dims: string, more = '', type = 'TYPE_INT32') =>
  `{input_name: IN, output_name: OUT, data_type: ${type}, dims: ${dims}${more}}`;
const initial = (dims: string, data: string, type = 'TYPE_INT32') =>
  `, initial_state: [{name: "initial state", data_type: ${type}, dims: ${dims}, ${data}}]`;

async function states(one: string, { maxBytes = 2 ** 20, batch = 4 } = {}) {
  const config = sequenceConfig(`{state: [${one}]}`, `max_batch_size: ${batch}`);
  return new SequenceStates(await readStates(config, folder), maxBytes);
}
const first = async (one: string, batch = 4) => (await states(one, { batch })).inputs(1)[0]!;

// "State Initialization" of Triton's architecture document.
describe('the state of the starting request', () => {
  it('has 1 for every variable size, and nothing of what was in memory before', async () => {
    const tensor = await first(state('[-1, 3, -1]'));
    expect(tensor).toMatchObject({ name: 'IN', datatype: 'INT32', shape: [1, 1, 3, 1] });
    expect(numbers(tensor)).toEqual([0, 0, 0]);
  });

  it('is zero where that is asked for', async () => {
    const tensor = await first(state('[-1]', initial('[1]', 'zero_data: true')));
    expect([tensor.shape, numbers(tensor)]).toEqual([[1, 1], [0]]);
    expect(
      (await first(state('[2]', initial('[2]', 'zero_data: true', 'TYPE_STRING'), 'TYPE_STRING'))).data,
    ).toEqual(packElements(['', '']));
  });

  it('is read from a file, in row-major order, of which what is too much is left alone', async () => {
    const tensor = await first(state('[-1, 1]', initial('[2, 1]', 'data_file: data')));
    expect([tensor.shape, numbers(tensor)]).toEqual([
      [1, 2, 1],
      [100, 200],
    ]);
    expect(numbers(await first(state('[1]', initial('[1]', 'data_file: deep/data'))))).toEqual([7]);
    expect(
      (await first(state('[2]', initial('[2]', 'data_file: texts', 'TYPE_STRING'), 'TYPE_STRING'))).data,
    ).toEqual(packElements(['a', 'bc']));
  });

  it('has no batch dimension where the model takes no batches', async () => {
    expect((await first(state('[-1]'), 0)).shape).toEqual([1]);
  });

  it.each([
    ['missing', 'TYPE_INT32', 'cannot be read'],
    ['short', 'TYPE_INT32', 'which has 3 bytes; the initial state takes 4.'],
    ['texts', 'TYPE_STRING', 'has 2 texts; the initial state has 1.'],
    ['cut', 'TYPE_STRING', 'ends in the middle of a text; the initial state has 1.'],
  ])('is refused where its file is wrong: %s', async (file, type, why) => {
    await expect(first(state('[1]', initial('[1]', `data_file: ${file}`, type), type))).rejects.toThrow(why);
  });
});

describe('files of initial states', () => {
  const check = (one: string, maxBytes = 1000) => {
    const text = `a: 1\nsequence_batching: {state: [${one}]}`;
    const written = parseModelConfig(text.slice(5), 'config.yaml', 'yaml');
    return checkInitialStates(
      sequenceConfig(`{state: [${one}]}`).sequence_batching!,
      folder,
      written,
      maxBytes,
    );
  };

  it('are looked at before anything starts', async () => {
    await check(state('[1]', initial('[1]', 'data_file: data')));
    await expect(check(state('[1]', initial('[1]', 'data_file: gone')))).rejects.toThrow(
      /^config.yaml:1: sequence_batching.state\[0\].initial_state\[0\].data_file is "gone"; there is no file .*initial_state\/gone\.$/,
    );
    await expect(check(state('[1]', initial('[1]', 'data_file: deep')))).rejects.toThrow('there is no file');
    await expect(check(state('[1]', initial('[1]', 'data_file: short')))).rejects.toThrow(
      /data_file names .*short, which has 3 bytes; the initial state takes 4\.$/,
    );
  });

  it('and states are held against max_state_bytes', async () => {
    await expect(check(state('[251]'))).rejects.toThrow(
      'sequence_batching.state[0] makes the states of one sequence 1004 bytes; max_state_bytes is 1000.',
    );
    await expect(check(state('[1]', initial('[1]', 'data_file: data')), 8)).rejects.toThrow(
      'data_file has 12 bytes; max_state_bytes is 8.',
    );
  });
});

describe('states of sequences', () => {
  it('are what the request before has given, whatever its variable sizes, and of each sequence its own', async () => {
    const kept = await states(state('[-1]'));
    expect(kept.keep(1, [int32('OUT', [5])])).toBeNull();
    expect(kept.keep(2, [int32('OUT', [6, 7, 8])])).toBeNull();
    expect(numbers(kept.inputs(1)[0]!)).toEqual([5]);
    expect(kept.inputs(2)[0]).toMatchObject({ name: 'IN', shape: [1, 3] });
    kept.keep(2, [int32('OUT', [9])]);
    expect(numbers(kept.inputs(2)[0]!)).toEqual([9]);
    expect([kept.size, kept.bytes]).toEqual([2, 8]);
  });

  it('are copies, on their way in and out', async () => {
    const kept = await states(state('[1]'));
    const given = int32('OUT', [5]);
    kept.keep(1, [given]);
    given.data.fill(0);
    const [taken] = kept.inputs(1);
    taken!.data.fill(0);
    expect(numbers(kept.inputs(1)[0]!)).toEqual([5]);
    const [start] = kept.inputs(3);
    start!.data.fill(1);
    expect(numbers(kept.inputs(3)[0]!)).toEqual([0]);
  });

  it('stay as they were where a request gives none, as in no_state_update of L0_implicit_state', async () => {
    const kept = await states(state('[1]', initial('[1]', 'data_file: data')));
    kept.keep(1, []);
    expect(numbers(kept.inputs(1)[0]!)).toEqual([100]);
    expect(kept.size).toBe(0);
  });

  it('are looked at and not kept where the request is the last one', async () => {
    const kept = await states(state('[1]'), { maxBytes: 4 });
    kept.keep(2, [int32('OUT', [5])]);
    expect(kept.keep(1, [int32('OUT', [5])], true)).toBeNull();
    expect(kept.keep(1, [int32('OUT', [5, 6])], true)).toContain('has the shape [1,2]');
    expect([kept.size, kept.bytes]).toEqual([1, 4]);
  });

  it('are forgotten with their sequence', async () => {
    const kept = await states(state('[-1]'));
    kept.keep(1, [int32('OUT', [5, 6])]);
    kept.forget(1);
    kept.forget(2);
    expect([kept.size, kept.bytes]).toEqual([0, 0]);
    expect(numbers(kept.inputs(1)[0]!)).toEqual([0]);
  });

  it('grow from request to request, up to a bound on all of them', async () => {
    const kept = await states(
      state('[-1]', ', use_same_buffer_for_input_output: true, use_growable_memory: true'),
      {
        maxBytes: 24,
      },
    );
    for (let length = 1; length <= 5; length++) {
      expect(kept.keep(1, [int32('OUT', Array(length).fill(length))])).toBeNull();
    }
    expect(kept.keep(2, [int32('OUT', [1])])).toBeNull();
    const why = 'the states of its sequences would take 28 bytes in this instance; max_state_bytes is 24';
    expect(kept.keep(2, [int32('OUT', [1, 2])])).toBe(why);
    expect(kept.keep(1, [int32('OUT', Array(6).fill(0))])).toBe(why);
    expect(kept.inputs(1)[0]!.shape).toEqual([1, 5]);
    kept.forget(2);
    expect(kept.keep(1, [int32('OUT', Array(6).fill(0))])).toBeNull();
    expect(kept.bytes).toBe(24);
  });

  it.each([
    [int32('OUT', [1, 2]), "output 'OUT' has the shape [1,2]; [1,1] is expected"],
    [int32('OUT', [1], [1]), "output 'OUT' has the shape [1]; [1,1] is expected"],
    [
      { ...int32('OUT', [1]), datatype: 'FP32' as const },
      "output 'OUT' has the datatype FP32; INT32 is expected",
    ],
    [{ ...int32('OUT', [1]), data: new Uint8Array(3) }, "output 'OUT' has 3 bytes; its shape takes 4"],
  ])('are kept only if they are what the configuration says', async (output, why) => {
    const kept = await states(state('[1]'));
    kept.keep(1, [int32('OUT', [8])]);
    expect(kept.keep(1, [output])).toBe(why);
    expect(numbers(kept.inputs(1)[0]!)).toEqual([8]);
  });
});
