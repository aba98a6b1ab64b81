import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FramesMessage, packMessage, unpackMessage } from '../../../cluster/nats/messages.js';
import { type Packable, pack, unpack } from '../../../cluster/nats/packet.js';
import { readPlainFrames } from '../../../cluster/nats/plain-frames.js';
import { RunWriter } from '../../../cluster/nats/token-runs.js';

const runsOf = (lengths: readonly number[]): Int32Array => {
  const writer = new RunWriter();
  for (const [i, length] of lengths.entries())
    writer.add(
      2 ** 33 + i,
      1,
      0,
      i,
      Int32Array.from({ length }, (_, token) => token * 1_000_003),
    );
  return writer.words;
};
const plain = (lengths: readonly number[], worker = 'w-1_a'): FramesMessage => ({
  ...{ kind: 'frames', worker, frames: [], failures: [], runs: runsOf(lengths) },
});

/** The bytes at an odd address, between others. */
function amid(bytes: Uint8Array): Uint8Array {
  const around = new Uint8Array(bytes.length + 9).fill(255);
  around.set(bytes, 3);
  return around.subarray(3, 3 + bytes.length);
}

describe('messages of frames that are nothing but runs', () => {
  it('are read as by the reader of all messages, at any address', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 12 });
    const workers = fc.stringMatching(/^[\w-]{1,64}$/);
    fc.assert(
      fc.property(lengths, workers, (counts, worker) => {
        const bytes = amid(packMessage(plain(counts, worker)));
        const read = readPlainFrames(bytes);
        expect(read).toEqual(unpack(bytes));
        expect(unpackMessage(bytes, 'hold', 'frames')).toEqual(read);
        bytes.fill(0);
        expect(read!.runs).toEqual(runsOf(counts));
      }),
    );
  });

  it('are only read where they are wanted', () => {
    expect(() => unpackMessage(packMessage(plain([1])), 'hold')).toThrow(
      'The kind of a message is "frames"; hold is expected.',
    );
  });

  const failure = { kind: 'internal', field: null, text: 'broken' } as const;
  it.each<[string, Record<string, unknown>]>([
    ['another kind', { ...plain([1]), kind: 'frame' }],
    ['another order', Object.fromEntries(Object.entries(plain([1])).reverse())],
    ['no runs', { kind: 'frames', worker: 'w', frames: [], failures: [] }],
    ['runs of no words', { ...plain([]) }],
    ['more than runs', { ...plain([1]), failures: [{ id: 'a', attempt: 1, failure }] }],
    ['a field more', { ...plain([1]), prefilled: [] }],
    ['a worker whose name is no word', { ...plain([1]), worker: 'w.1' }],
    ['a worker whose name is too long', { ...plain([1]), worker: 'w'.repeat(65) }],
    ['numbers of another kind', { ...plain([1]), runs: new Float32Array(7) }],
    ['runs that are cut off', { ...plain([1]), runs: runsOf([2]).subarray(1) }],
  ])('leave all else to the reader of all messages: %s', (_, message) => {
    expect(readPlainFrames(pack(message as Packable))).toBeNull();
  });

  it('are left to it where bytes are missing or too many', () => {
    const bytes = packMessage(plain([2]));
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readPlainFrames(bytes.subarray(0, length))).toBeNull();
    }
    expect(readPlainFrames(Uint8Array.of(...bytes, 0))).toBeNull();
    const long = bytes.slice();
    long[3] = 1;
    expect(readPlainFrames(long)).toBeNull();
  });
});
