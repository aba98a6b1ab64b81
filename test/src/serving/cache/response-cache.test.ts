import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InferTensor } from '../../../../callbacks/infer/infer-types.js';
import { requestKey } from '../../../../src/serving/cache/cached-model.js';
import { type KeptAnswer, ownCopy, ResponseCache } from '../../../../src/serving/cache/response-cache.js';
import { draws } from '../../../support/scale.js';

const tensor = (bytes: number[], name = 'Y', shape = [bytes.length]): InferTensor => ({
  name,
  datatype: 'UINT8',
  shape,
  data: Uint8Array.from(bytes),
});
const answer = (...bytes: number[]): KeptAnswer => ({ outputs: [tensor(bytes)] });
const bytesIn = (found: KeptAnswer | null) => found && [...found.outputs[0]!.data];

/** Bytes that one answer of this many elements takes, as the cache counts. */
function sizeOf(elements: number, key = 'k'): number {
  const cache = new ResponseCache(2 ** 30);
  cache.put({}, key, answer(...Array(elements).fill(0)));
  return cache.counts().bytes;
}

describe('the response cache', () => {
  it('keeps what was used last within its bytes, whatever comes', () => {
    const owners = [{}, {}];
    const step = fc.oneof(
      fc.record({ op: fc.constant('put' as const), key: fc.nat(9), size: fc.nat(60), owner: fc.nat(1) }),
      fc.record({ op: fc.constant('find' as const), key: fc.nat(9) }),
      fc.record({ op: fc.constant('drop' as const), owner: fc.nat(1) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 0, max: 4000 }), (steps, maxBytes) => {
        const cache = new ResponseCache(maxBytes);
        // The oracle: a list, the least recently used first.
        let kept: { key: string; owner: object; size: number; bytes: number }[] = [];
        for (const one of steps) {
          if (one.op === 'drop') {
            cache.drop(owners[one.owner]!);
            kept = kept.filter(({ owner }) => owner !== owners[one.owner]);
          } else if (one.op === 'find') {
            const found = kept.find(({ key }) => key === `k${one.key}`);
            expect(bytesIn(cache.find(`k${one.key}`))).toEqual(
              found ? Array(found.size).fill(one.key) : null,
            );
            if (found) kept = [...kept.filter((other) => other !== found), found];
          } else {
            const key = `k${one.key}`;
            const bytes = sizeOf(one.size, key);
            const isNew = !kept.some((other) => other.key === key) && bytes <= maxBytes;
            expect(cache.put(owners[one.owner]!, key, answer(...Array(one.size).fill(one.key)))).toBe(isNew);
            if (isNew) {
              kept.push({ key, owner: owners[one.owner]!, size: one.size, bytes });
              while (kept.reduce((sum, other) => sum + other.bytes, 0) > maxBytes) kept.shift();
            }
          }
          const { entries, bytes } = cache.counts();
          expect(entries).toBe(kept.length);
          expect(bytes).toBe(kept.reduce((sum, other) => sum + other.bytes, 0));
        }
      }),
      { numRuns: draws(80) },
    );
  });

  it('counts keys, names, shapes and parameters with the elements', () => {
    const size = (key: string, one: KeptAnswer) => {
      const cache = new ResponseCache(2 ** 30);
      cache.put({}, key, one);
      return cache.counts().bytes;
    };
    const plain = size('k', answer(1));
    expect(size('k'.repeat(101), answer(1))).toBe(plain + 100);
    expect(size('k', { outputs: [tensor([1], 'Y'.repeat(101))] })).toBe(plain + 200);
    expect(size('k', { outputs: [tensor([1], 'Y', [1, 1, 1])] })).toBe(plain + 16);
    expect(size('k', { ...answer(1), parameters: { note: 'x'.repeat(100) } })).toBeGreaterThan(plain + 100);
    expect(size('k', { outputs: [] })).toBeGreaterThan(500);
  });

  it('hands out copies, which nobody can spoil', () => {
    const cache = new ResponseCache(2 ** 20);
    const given = answer(1, 2, 3);
    cache.put({}, 'k', ownCopy(given));
    given.outputs[0]!.data.fill(9);
    const first = cache.find('k')!;
    first.outputs[0]!.data.fill(8);
    structuredClone(first.outputs[0]!.data.buffer, {
      transfer: [first.outputs[0]!.data.buffer as ArrayBuffer],
    });
    expect(bytesIn(cache.find('k'))).toEqual([1, 2, 3]);
  });
});

describe('the key of a request', () => {
  const request = { inputs: [tensor([1, 2], 'A'), tensor([3], 'B')], outputs: null, parameters: {} };
  const key = (changes: object, readsParameters = true, owner = 1) =>
    requestKey(owner, { ...request, ...changes }, readsParameters);

  it.each([
    ['an element', { inputs: [tensor([1, 3], 'A'), tensor([3], 'B')] }],
    ['the shape', { inputs: [tensor([1, 2], 'A', [2, 1]), tensor([3], 'B')] }],
    ['the type', { inputs: [{ ...tensor([1, 2], 'A'), datatype: 'INT8' }, tensor([3], 'B')] }],
    ['a name', { inputs: [tensor([1, 2], 'A'), tensor([3], 'C')] }],
    ['where an element is', { inputs: [tensor([1], 'A'), tensor([2, 3], 'B')] }],
    ['an input less', { inputs: [tensor([1, 2], 'A')] }],
    ['the outputs that are wanted', { outputs: ['Y'] }],
    ['a parameter', { parameters: { style: 1 } }],
  ])('differs with %s', (_, changes) => {
    expect(key(changes)).not.toBe(key({}));
  });

  it('differs with the type of a parameter, and between models', () => {
    expect(key({ parameters: { style: '1' } })).not.toBe(key({ parameters: { style: 1 } }));
    expect(key({ parameters: { style: 1n } })).not.toBe(key({ parameters: { style: 1 } }));
    expect(key({}, true, 2)).not.toBe(key({}, true, 1));
  });

  it.each([
    ['the order of inputs', { inputs: [tensor([3], 'B'), tensor([1, 2], 'A')] }],
    ['id, priority and timeout', { id: 'x', priority: 3, timeoutUs: 5 }],
  ])('is the same whatever %s', (_, changes) => {
    expect(key(changes)).toBe(key({}));
  });

  it('is the same whatever the order of outputs and parameters, and without those that nobody reads', () => {
    expect(key({ outputs: ['Y', 'Z'] })).toBe(key({ outputs: ['Z', 'Y', 'Z'] }));
    expect(key({ parameters: { a: 1, b: 2 } })).toBe(key({ parameters: { b: 2, a: 1 } }));
    expect(key({ parameters: { a: 1 } }, false)).toBe(key({}, false));
  });
});
