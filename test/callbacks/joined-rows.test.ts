import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { JoinedRows } from '../../callbacks/joined-rows.js';

/** Turns of this thread that others have while `work` is under way. */
async function turnsWhile(work: Promise<unknown>): Promise<number> {
  let [turns, isOver] = [0, false];
  void work.then(() => {
    isOver = true;
  });
  for (; !isOver; turns++) await turn();
  return turns;
}

it('joins rows in their order, and gives the array away once', async () => {
  const joined = await JoinedRows.of([Float32Array.of(1, 2), Float32Array.of(3, 4)]);
  expect(joined.take()).toEqual(Float32Array.of(1, 2, 3, 4));
  expect(joined.take()).toBeNull();
  expect((await JoinedRows.of([])).take()).toEqual(new Float32Array(0));
});

it('copies no more than 4 MiB in one turn, in memory of its own', async () => {
  const picture = new Float32Array(2 ** 22).map((_, i) => i);
  const rows = Array.from({ length: 512 }, (_, i) => picture.subarray(i * 2 ** 13, (i + 1) * 2 ** 13));
  const joining = JoinedRows.of(rows);
  expect(await turnsWhile(joining)).toBeGreaterThanOrEqual(3);
  const values = (await joining).take()!;
  expect(values).toHaveLength(picture.length);
  // A matcher would compare four million numbers one by one.
  expect(Buffer.from(values.buffer).equals(Buffer.from(picture.buffer))).toBe(true);
  expect(values.byteLength).toBe(values.buffer.byteLength);
  expect(values.buffer).not.toBe(picture.buffer);
});
