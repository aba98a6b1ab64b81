import { describe, expect, it } from 'vitest';
import { packElements } from '../../../../callbacks/infer/byte-elements.js';
import type { BatchRow } from '../../../../engine/backends/backend.js';
import { byStateSizes, rowsOf } from '../../../../engine/backends/sequences/batch-rows.js';
import { ControlInputs } from '../../../../engine/backends/sequences/control-inputs.js';
import { control, int32, numbers, sequenceConfig, slotRequest } from '../support/sequence-models.js';

const READY = control('READY', 'int32_false_true: [0, 1]');
const controls = new ControlInputs(sequenceConfig(`{control_input: [${READY}]}`).sequence_batching!, true);

const request = (id: bigint, slot: number, values: number[], state: number[]) => {
  const own = { id, slot };
  return slotRequest(own, [
    int32('X', values),
    { name: 'T', datatype: 'BYTES', shape: [1, 2], data: packElements(['ab', 'c']) },
    ...controls.of({ start: false, end: false, ...own }),
    int32('S', state),
  ]);
};
const text = (rows: readonly BatchRow[]) =>
  rows.map((row) => row.request?.sequence?.id.toString() ?? '-').join(' ');
const inputOf = (row: BatchRow, name: string) => row.inputs.find((one) => one.name === name)!;

describe('rows of a batch', () => {
  const requests = [request(1n, 1, [5, 6], [7]), request(2n, 3, [8, 9], [1])];

  it('are those of the slots, with empty ones between them and behind', () => {
    const rows = rowsOf(requests, 5, controls);
    expect(text(rows)).toBe('- 1 - 2 -');
    expect(rows.map((row) => numbers(inputOf(row, 'READY'))[0])).toEqual([0, 1, 0, 1, 0]);
  });

  it('are empty with zeros in the sizes of others', () => {
    const [empty] = rowsOf(requests, 4, controls);
    expect(inputOf(empty!, 'X')).toMatchObject({ shape: [1, 2], datatype: 'INT32' });
    expect(numbers(inputOf(empty!, 'X'))).toEqual([0, 0]);
    expect(inputOf(empty!, 'T').data).toEqual(packElements(['', '']));
    expect(empty!.batchSize).toBe(1);
  });
});

describe('rows with states of other sizes', () => {
  const requests = [request(1n, 0, [1], [1, 1]), request(2n, 1, [1], [2]), request(3n, 3, [1], [3, 3])];
  const names = new Set(['S']);

  it('run apart, each in its own slot', () => {
    const groups = byStateSizes(rowsOf(requests, 4, controls), names, { controls, keepsSlots: true });
    expect(groups.map(text)).toEqual(['1 - - 3', '- 2 - -']);
    for (const group of groups) {
      expect(new Set(group.map((row) => inputOf(row, 'S').shape.join())).size).toBe(1);
      expect(group.map((row) => numbers(inputOf(row, 'READY'))[0])).toEqual(
        group.map((row) => (row.request === null ? 0 : 1)),
      );
    }
  });

  it('or without empty rows where slots mean nothing', () => {
    const rows = requests.map((one) => ({ request: one, inputs: one.inputs, batchSize: 1 }));
    const groups = byStateSizes(rows, names, { controls, keepsSlots: false });
    expect(groups.map(text)).toEqual(['1 3', '2']);
  });

  it('are left as they are where all are equal', () => {
    const rows = rowsOf([requests[0]!, requests[2]!], 5, controls);
    expect(byStateSizes(rows, names, { controls, keepsSlots: true })).toEqual([rows]);
  });
});
