import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessageReader } from '../../../../../src/server/grpc/wire/message-reader.js';
import { draws } from '../../../../support/scale.js';

const framed = (bytes: Uint8Array, flag = 0): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
};

function reader({ maxBytes = 2 ** 20 } = {}) {
  const expected: number[] = [];
  const held: number[] = [];
  const it = new MessageReader({
    maxBytes,
    expect: (bytes) => void expected.push(bytes),
    hold: (bytes) => void held.push(bytes),
  });
  return { it, expected, held };
}

describe('the messages of a stream', () => {
  it('are those that were sent, however they are cut', () => {
    const message = fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(0, 1));
    const property = fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 }),
      (messages, cuts) => {
        const bytes = Buffer.concat(messages.map(([content, flag]) => framed(content, flag)));
        const { it: found } = reader();
        const read: unknown[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const end = at + cuts[i % cuts.length]!;
          found.push(bytes.subarray(at, end));
          at = end;
          for (let one = found.next(); one !== null; one = found.next()) {
            read.push([Buffer.from(one.bytes).toString('hex'), one.isCompressed]);
          }
        }
        expect(read).toEqual(
          messages.map(([content, flag]) => [Buffer.from(content).toString('hex'), flag === 1]),
        );
        expect(found.isWithin).toBe(false);
      },
    );
    fc.assert(property, { numRuns: draws(80) });
  });

  it('are not copied within one chunk', () => {
    const chunk = framed(Buffer.from('abc'));
    const { it: found, held } = reader();
    found.push(chunk);
    const { bytes } = found.next()!;
    expect(bytes.buffer).toBe(chunk.buffer);
    expect(held).toEqual([3]);
  });

  it('take memory as they come, not as they announce it', () => {
    const { it: found, expected, held } = reader({ maxBytes: 2 ** 24 });
    const message = framed(new Uint8Array(2 ** 24));
    found.push(message.subarray(0, 1000));
    expect(found.next()).toBeNull();
    expect(found.isWithin).toBe(true);
    expect(expected).toEqual([2 ** 24]);
    expect(held).toEqual([2 ** 18]);
    for (let at = 1000; at < message.length; at += 2 ** 16) {
      found.push(message.subarray(at, at + 2 ** 16));
      found.next();
      // Never more than twice what has come.
      expect(held.at(-1)).toBeLessThanOrEqual(Math.max(2 ** 18, 2 * (at + 2 ** 16)));
    }
    expect(held.at(-1)).toBe(2 ** 24);
  });

  it('are refused before their first byte where they are too long, and where there is no memory', () => {
    const { it: long } = reader({ maxBytes: 10 });
    long.push(framed(new Uint8Array(11)).subarray(0, 5));
    expect(() => long.next()).toThrow('Received message larger than max (11 vs. 10)');
    const full = new MessageReader({
      maxBytes: 100,
      expect: () => {
        throw new Error('no room');
      },
      hold: () => {},
    });
    full.push(framed(new Uint8Array(11)));
    expect(() => full.next()).toThrow('no room');
  });

  it('begin with 0 or 1', () => {
    const { it: found } = reader();
    found.push(framed(new Uint8Array(1), 2));
    expect(() => found.next()).toThrow('a message begins with 2: 0 or 1 is expected');
  });
});
