import { describe, expect, it } from 'vitest';
import { sentTensors } from '../../../../callbacks/infer/sent-tensors.js';
import { moduleInput } from '../../../../engine/backends/module/module-tensors.js';
import { GivenInputs } from '../../../../src/serving/texts/given-inputs.js';

/** Bytes as gRPC gives them: a Buffer somewhere within a message, at any place. */
function within(values: Int32Array | Float32Array, offset: number): Buffer {
  const message = Buffer.alloc(offset + values.byteLength + 9, 0x5a);
  const data = message.subarray(offset, offset + values.byteLength);
  data.set(new Uint8Array(values.buffer));
  return data;
}

describe.each([0, 1, 3, 4, 7])('a Buffer that begins at byte %i of its memory', (offset) => {
  const ids = Int32Array.of(1, 87, 85, 270);
  const numbers = Float32Array.of(0.5, -1, 2, 4);
  const idTensor = {
    name: 'input_ids',
    datatype: 'INT32',
    shape: [1, 4],
    data: within(ids, offset),
  } as const;

  it('is read as its own elements alone', () => {
    const table = { name: 'prompt_embedding_table', datatype: 'FP32', shape: [1, 2, 2] } as const;
    const given = new GivenInputs([idTensor, { ...table, data: within(numbers, offset) }]);
    expect(given.integers('input_ids')).toEqual(ids);
    expect(given.floats('prompt_embedding_table')).toEqual(numbers);
    expect(given.rows('prompt_embedding_table', 2)).toEqual([numbers.subarray(0, 2), numbers.subarray(2)]);
  });

  it('has no more rows than are taken, and none without elements', () => {
    const table = { name: 'prompt_embedding_table', datatype: 'FP32' } as const;
    const rowsOf = (shape: number[], data: Float32Array) =>
      new GivenInputs([{ ...table, shape, data: within(data, offset) }]).rows('prompt_embedding_table', 2);
    expect(() => rowsOf([1, 4, 1], numbers)).toThrow(
      "'prompt_embedding_table' has 4 rows; at most 2 are taken",
    );
    expect(() => rowsOf([5e9, 0], new Float32Array(0))).toThrow('has 5000000000 rows; at most 2 are taken');
    expect(() => rowsOf([1, 2, 0], new Float32Array(0))).toThrow('has rows without elements');
    expect(rowsOf([0, 0], new Float32Array(0))).toEqual([]);
  });

  it('is a copy, which nobody else writes into', () => {
    const copy = new GivenInputs([idTensor]).integers('input_ids')!;
    copy.fill(0);
    expect(new GivenInputs([idTensor]).integers('input_ids')).toEqual(ids);
  });

  it('is read by a module and sent to another thread without what is around it', () => {
    expect(moduleInput(idTensor).data).toEqual(ids);
    const [sent] = sentTensors([idTensor]);
    expect([sent!.data.buffer.byteLength, new Int32Array(sent!.data.buffer)]).toEqual([16, ids]);
  });
});
