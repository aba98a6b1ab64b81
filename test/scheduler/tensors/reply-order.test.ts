import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';

describe('answers in the order of their requests', () => {
  it('wait for those before them', () => {
    const order = new ReplyOrder<string, string>();
    for (const request of ['A', 'B', 'C']) order.begin(request);
    expect(order.settle('B', 'b')).toEqual([]);
    expect(order.settle('A', 'a')).toEqual([
      { request: 'A', answer: 'a' },
      { request: 'B', answer: 'b' },
    ]);
    expect(order.size).toBe(1);
    expect(order.settle('C', 'c')).toEqual([{ request: 'C', answer: 'c' }]);
    expect(order.size).toBe(0);
  });

  it('go at once where several answer the first request', () => {
    const order = new ReplyOrder<string, string>();
    order.begin('A');
    order.begin('B');
    expect(order.answer('A', 'a1').map(({ answer }) => answer)).toEqual(['a1']);
    expect(order.answer('B', 'b1')).toEqual([]);
    expect(order.answer('A', 'a2').map(({ answer }) => answer)).toEqual(['a2']);
    expect(order.end('A').map(({ answer }) => answer)).toEqual(['b1']);
    expect(order.answer('B', 'b2').map(({ answer }) => answer)).toEqual(['b2']);
    expect(order.end('B')).toEqual([]);
  });

  it('are not held up by one that has left', () => {
    const order = new ReplyOrder<string, string>();
    for (const request of ['A', 'B', 'C']) order.begin(request);
    order.answer('B', 'b');
    order.settle('C', 'c');
    expect(order.leave('B')).toEqual([]);
    expect(order.leave('A')).toEqual([{ request: 'C', answer: 'c' }]);
    expect([order.size, order.leave('A')]).toEqual([0, []]);
  });

  it('are taken from requests that are being answered only', () => {
    const order = new ReplyOrder<string, string>();
    order.begin('A');
    order.begin('B');
    order.settle('B', 'b');
    expect(() => order.begin('B')).toThrow(TypeError);
    expect([order.settle('B', 'again'), order.answer('B', 'again'), order.settle('X', 'x')]).toEqual([
      [],
      [],
      [],
    ]);
    expect(order.settle('A', 'a')).toHaveLength(2);
  });

  it('come once each, in order, whatever the order in which they are computed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ rank: fc.nat(50), answers: fc.nat(3), leaves: fc.boolean() })),
        (list) => {
          const order = new ReplyOrder<number, string>();
          const released: string[] = [];
          for (const index of list.keys()) order.begin(index);
          const computed = [...list.entries()].sort(([, one], [, other]) => one.rank - other.rank);
          for (const [index, { answers }] of computed) {
            for (let number = 0; number < answers; number++)
              released.push(...order.answer(index, `${index}.${number}`).map(({ answer }) => answer));
          }
          const sentBefore = new Set(released);
          for (const [index, { leaves }] of computed) {
            const step = leaves ? order.leave(index) : order.settle(index, `${index}.last`);
            released.push(...step.map(({ answer }) => answer));
          }
          const expected = list.flatMap(({ answers, leaves }, index) => {
            const some = Array.from({ length: answers }, (_, number) => `${index}.${number}`);
            return leaves ? some.filter((answer) => sentBefore.has(answer)) : [...some, `${index}.last`];
          });
          // What was given out before its request left stays given out; all else of it is dropped.
          const isDropped = (answer: string) =>
            list[Number(answer.split('.')[0])]!.leaves && !sentBefore.has(answer);
          expect(released.filter((answer) => !isDropped(answer))).toEqual(expected);
          expect(order.size).toBe(0);
        },
      ),
    );
  });
});
