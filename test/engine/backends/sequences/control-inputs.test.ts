import { describe, expect, it } from 'vitest';
import { elementsOf } from '../../../../callbacks/infer/byte-elements.js';
import type { InferSequence } from '../../../../callbacks/infer/infer-types.js';
import { rowsOf } from '../../../../engine/backends/sequences/batch-rows.js';
import { ControlInputs } from '../../../../engine/backends/sequences/control-inputs.js';
import { type SequenceBatch, SequenceBatcher } from '../../../../scheduler/tensors/sequence-batcher.js';
import { direct, type NamedStep, sequencing, step } from '../../../support/sequence-timeline.js';
import { control, sequenceConfig, slotRequest } from '../support/sequence-models.js';

const controlsOf = (controls: string[], isBatched = true) =>
  new ControlInputs(
    sequenceConfig(`{control_input: [${controls.join(', ')}]}`).sequence_batching!,
    isBatched,
  );

const ROW: InferSequence = { id: 5n, start: true, end: false };
const floats = (data: Uint8Array) => [...new Float32Array(data.slice().buffer)];

describe('control inputs', () => {
  // The figure of "Direct" in Triton's architecture: two sequences in the two slots of an instance.
  it('are START and READY of the example, over time', () => {
    const controls = controlsOf([
      control('START', 'fp32_false_true: [0, 1]'),
      control('READY', 'fp32_false_true: [0, 1]'),
    ]);
    const batcher = new SequenceBatcher<NamedStep>(sequencing(direct(2)));
    batcher.noteInstance(0, true, 0);
    const seen: number[][][] = [];
    const run = (atUs: number): SequenceBatch<NamedStep> | null => {
      const { batch } = batcher.next(atUs, [0]);
      if (batch === null) return null;
      const requests = batch.rows.map(({ request: { sequence }, slot, start, end }) => {
        const own = { id: String(sequence.key), start, end, slot };
        return slotRequest(own, controls.of(own));
      });
      const rows = rowsOf(requests, 2, controls); // the picture shows both slots of each execution
      const column = (name: string) =>
        rows.map(({ inputs }) => floats(inputs.find((one) => one.name === name)!.data)[0]!);
      seen.push([column('START'), column('READY')]);
      batcher.settle(batch, atUs);
      return batch;
    };
    batcher.add(step('A0+'), 0);
    run(0);
    expect(run(5)).toBeNull(); // idle
    for (const name of ['A1', 'B0+', 'A2', 'B1', 'B2']) batcher.add(step(name), 10);
    while (run(10) !== null);
    expect(seen).toEqual([
      [
        [1, 0],
        [1, 0],
      ],
      [
        [0, 1],
        [1, 1],
      ],
      [
        [0, 0],
        [1, 1],
      ],
      [
        [0, 0],
        [0, 1],
      ],
    ]);
  });

  it.each([
    [
      'int32_false_true: [-3, 9]',
      'INT32',
      [-3, 9],
      (data: Uint8Array) => new Int32Array(data.slice().buffer)[0],
    ],
    ['fp32_false_true: [0.5, 1.5]', 'FP32', [0.5, 1.5], (data: Uint8Array) => floats(data)[0]],
    ['bool_false_true: [false, true]', 'BOOL', [0, 1], (data: Uint8Array) => data[0]],
    ['bool_false_true: [true, false]', 'BOOL', [1, 0], (data: Uint8Array) => data[0]],
  ])('have values of their own: %s', (values, datatype, [no, yes], read) => {
    for (const name of ['START', 'END', 'READY']) {
      const controls = controlsOf([control(name, values)]);
      const of = (row: InferSequence | null) => read(controls.of(row)[0]!.data);
      expect(controls.of(ROW)[0]).toMatchObject({ name, datatype, shape: [1, 1] });
      expect(of(null)).toBe(no);
      const both = { id: 5n, start: true, end: true };
      const neither = { id: 5n, start: false, end: false };
      expect([of(both), of(neither)]).toEqual([yes, name === 'READY' ? yes : no]);
    }
  });

  const MAX_ID = 2n ** 64n - 1n;
  it.each([
    ['TYPE_UINT64', 8, (data: Uint8Array) => new BigUint64Array(data.slice().buffer)[0], MAX_ID],
    ['TYPE_INT64', 8, (data: Uint8Array) => new BigInt64Array(data.slice().buffer)[0], -1n],
    ['TYPE_UINT32', 4, (data: Uint8Array) => new Uint32Array(data.slice().buffer)[0], 2 ** 32 - 1],
    ['TYPE_INT32', 4, (data: Uint8Array) => new Int32Array(data.slice().buffer)[0], -1],
  ])('give the id as %s', (type, bytes, read, most) => {
    const controls = controlsOf([control('CORRID', `data_type: ${type}`)]);
    const of = (row: InferSequence | null) => controls.of(row)[0]!.data;
    expect(of(ROW)).toHaveLength(bytes);
    expect([read(of(ROW)), read(of(null))].map(Number)).toEqual([5, 0]);
    expect(read(of({ ...ROW, id: MAX_ID }))).toBe(most);
  });

  it('give the id as a text, which is empty for an empty row', () => {
    const controls = controlsOf([control('CORRID', 'data_type: TYPE_STRING')]);
    const text = (row: InferSequence | null) => {
      const { datatype, data } = controls.of(row)[0]!;
      expect(datatype).toBe('BYTES');
      return elementsOf(data).map((one) => Buffer.from(one).toString());
    };
    expect(text({ ...ROW, id: 'é-7' })).toEqual(['é-7']);
    expect(text(null)).toEqual(['']);
  });

  it('have no batch dimension where the model takes no batches', () => {
    const controls = controlsOf([control('START', 'int32_false_true: [0, 1]')], false);
    expect(controls.of(ROW)[0]!.shape).toEqual([1]);
    expect([controls.hasReady, controls.names]).toEqual([false, ['START']]);
  });
});
