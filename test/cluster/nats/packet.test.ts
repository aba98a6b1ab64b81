import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Packable, PacketError, pack, unpack } from '../../../cluster/nats/packet.js';

const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.double(),
  fc.string(),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc
    .array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 5 })
    .map((list) => Int32Array.from(list)),
  fc.array(fc.float(), { maxLength: 5 }).map((list) => Float32Array.from(list)),
  fc.array(fc.double(), { maxLength: 3 }).map((list) => Float64Array.from(list)),
  fc.uint8Array({ maxLength: 7 }),
);
const key = fc.string({ minLength: 1, maxLength: 6 }).filter((name) => name !== '$' && name !== '__proto__');
const { value } = fc.letrec<{ value: Packable }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ) as fc.Arbitrary<Packable>,
}));

describe('a packet', () => {
  it('brings every value back, to the bit, from any place in memory', () => {
    fc.assert(
      fc.property(value, fc.integer({ min: 0, max: 9 }), (packed, shift) => {
        const bytes = pack(packed);
        // As a message lies among others in what a socket has read.
        const around = Buffer.alloc(bytes.length + 20, 0xee);
        around.set(bytes, shift);
        expect(unpack(around.subarray(shift, shift + bytes.length))).toEqual(packed);
      }),
    );
  });

  it('leaves out what is undefined', () => {
    expect(unpack(pack({ a: undefined, b: 1 }))).toEqual({ b: 1 });
  });

  it.each([
    [new Uint8Array(3), 'A packet has 3 bytes; at least 4 are expected.'],
    [Uint8Array.of(9, 0, 0, 0, 65), 'A packet of 5 bytes names 9 bytes of JSON.'],
    [Uint8Array.of(1, 0, 0, 0, 65), 'The beginning of a packet is no JSON.'],
    [Uint8Array.of(1, 0, 0, 0, 0xff), 'The beginning of a packet is no JSON.'],
    [Uint8Array.of(1, 0, 0, 0, 49, 7), 'A packet has bytes after its last array.'],
    [json('{"$":"i2"}'), 'A packet names an array of 2 numbers that it does not have.'],
    [json('{"$":"i9999999999"}'), 'A packet names an array of 9999999999 numbers that it does not have.'],
    [json('{"$":"x"}'), 'A packet has the mark "x", which nothing knows.'],
    [json(`${'['.repeat(40)}${']'.repeat(40)}`), 'A packet has more than 16 levels.'],
  ])('%o: is refused', (bytes, message) => {
    const read = () => unpack(bytes);
    expect(read).toThrow(PacketError);
    expect(read).toThrow(message);
  });

  it('that is damaged anywhere is refused, or is another value', () => {
    const packed: Packable = { kind: 'x', list: [1, 2n, Int32Array.of(1, 2, 3)], text: 'abc' };
    const bytes = pack(packed);
    for (let end = 0; end < bytes.length; end++)
      expect(() => unpack(bytes.subarray(0, end))).toThrow(PacketError);
  });
});

function json(text: string): Uint8Array {
  const bytes = Buffer.alloc(4 + text.length);
  bytes.writeUInt32LE(text.length);
  bytes.write(text, 4);
  return bytes;
}
