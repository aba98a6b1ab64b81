import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeFrame, type Frame, FrameReader } from '../../../host/ranks/frames.js';

test('frames come out whole, however the stream is cut', () => {
  const frame = fc.record({
    kind: fc.integer({ min: 1, max: 9 }),
    numbers: fc.tuple(fc.nat(), fc.nat(), fc.nat()),
    bytes: fc.uint8Array({ maxLength: 50 }),
  });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (frames, cuts) => {
        const stream = Buffer.concat(frames.map(encodeFrame));
        const read: Frame[] = [];
        const reader = new FrameReader((one) => read.push({ ...one, bytes: new Uint8Array(one.bytes) }));
        for (let at = 0, i = 0; at < stream.length; i++) {
          const length = cuts[i % cuts.length]!;
          reader.push(stream.subarray(at, at + length));
          at += length;
        }
        expect(read).toEqual(frames);
      },
    ),
  );
});

test('a frame longer than any is refused before it is kept', () => {
  const reader = new FrameReader(() => {});
  expect(() => reader.push(Buffer.from([0xff, 0xff, 0xff, 0x7f]))).toThrow('A rank sent a frame of');
});
