import { describe, expect, it } from 'vitest';
import { AnswerWriter } from '../../../engine/backends/packed-answers.js';

const tensor = (value: number, length: number) => ({
  name: 'Y',
  datatype: 'UINT8' as const,
  shape: [length],
  data: new Uint8Array(length).fill(value),
});

/** Bytes of each output that was written. */
function written({ bytes, responses }: ReturnType<AnswerWriter['take']>): number[][] {
  return responses.flatMap(({ outputs }) =>
    outputs.map(({ offset, length }) => [...bytes.subarray(offset, offset + length)]),
  );
}

describe('answers of a batch', () => {
  it.each([
    ['no memory', null],
    ['memory that is large enough', new ArrayBuffer(1000)],
    ['memory that is too small', new ArrayBuffer(16)],
  ])('lie one behind the other, in %s', (_, lent) => {
    const writer = new AnswerWriter(lent);
    for (const value of [1, 2, 3]) writer.respond(value, [tensor(value, 5), tensor(10 * value, 9)], null);
    writer.end(1);
    writer.fail(2, 'no luck');
    const taken = writer.take();
    expect(written(taken)).toEqual(
      [1, 10, 2, 20, 3, 30].map((value) => Array(value < 10 ? 5 : 9).fill(value)),
    );
    expect(taken.responses.map(({ request }) => request)).toEqual([1, 2, 3]);
    expect([taken.ended, taken.failed]).toEqual([[1], [[2, 'no luck']]]);
    expect(taken.bytes.buffer === lent).toBe((lent?.byteLength ?? 0) === 1000);
  });

  it('go back in the memory that was lent where there is none, and only with what is taken first', () => {
    const lent = new ArrayBuffer(1000);
    const writer = new AnswerWriter(lent);
    expect(writer.take().bytes.buffer).toBe(lent);
    writer.respond(0, [tensor(1, 8)], null);
    const taken = writer.take();
    expect(taken.bytes.buffer).not.toBe(lent);
    expect(written(taken)).toEqual([Array(8).fill(1)]);
  });

  it('are copied to a buffer of their own where most of theirs is free', () => {
    const writer = new AnswerWriter();
    writer.respond(0, [tensor(1, 64)], null);
    for (let i = 0; i < 3; i++) writer.respond(i, [tensor(2, 8)], null);
    const { bytes } = writer.take();
    expect(bytes.length).toBe(88);
    expect(bytes.buffer.byteLength).toBeLessThanOrEqual(2 * bytes.length);
  });
});
