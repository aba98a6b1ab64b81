import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asInts, CALL_KINDS, type Call, CallReader, CallWriter } from '../../../engine/ranks/call-bytes.js';
import { adapterArrays, batchArrays, readAdapter, readBatch } from '../../../engine/ranks/call-codec.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';

/** Rank 0 and one other, which answers when it is asked to. */
class Pair {
  readonly memory: ArrayBuffer;
  readonly reader: CallReader;
  readonly writer: CallWriter;
  rung = 0;
  answered = 0;
  pieces = 0;
  waits = 0;

  constructor(bytes: number) {
    this.memory = new ArrayBuffer(bytes);
    this.reader = new CallReader(this.memory);
    const progress = { callNumber: () => this.rung, answeredByAll: () => this.answered };
    this.writer = new CallWriter(this.memory, progress, {
      awaitAll: () => {
        this.waits++;
        while (this.answered < this.rung) this.read();
      },
      handOver: () => {
        this.rung++;
        this.pieces++;
        expect(this.read()).toBeNull();
      },
    });
  }

  /** What the next call was when it was read, with copies of its arrays. */
  readonly seen: (Call | null)[] = [];

  read(): Call | null {
    const call = this.reader.read(this.answered + 1);
    this.seen.push(call === null ? null : { ...call, arrays: call.arrays.map((array) => array.slice()) });
    this.answered++;
    return call;
  }

  /** Writes and rings. */
  call(...[kind, arrays]: Parameters<CallWriter['write']>): void {
    this.writer.write(kind, arrays);
    this.rung++;
  }
}

describe('the bytes of a call', () => {
  test('a batch comes as it was, with what is rare', () => {
    const pair = new Pair(1 << 16);
    const batch = {
      ...makeStepBatch(
        [
          { tokens: [1, 2, 3], cached: 0, blocks: [4, 5] },
          { tokens: [7, 8], cached: 1, blocks: [6] },
        ],
        { tokensPerBlock: 16, inverseFrequencies: Float32Array.of(1, 0.5), newBlocks: [4] },
      ),
      adapterSlots: Int32Array.of(-1, 2),
      promptTables: [{ first: 0, count: 2, table: Float32Array.of(0.5, 1.5) }],
    };
    const logits = new Float32Array(9);
    const returnedRows = [
      { of: 'tokens', first: 1, count: 2, logits, logProbs: null },
      { of: 'logitRows', first: 0, count: 1, logits, logProbs: null },
    ] as const;
    pair.call(CALL_KINDS.forward, batchArrays({ ...batch, returnedRows }, false));
    const call = pair.read()!;
    expect(call.kind).toBe(CALL_KINDS.forward);
    const expected = [{ of: 'tokens', first: 1, count: 2, logits: null, logProbs: null }];
    const none = new Int32Array(0);
    const slots = { stateSlots: none, stateDrafts: none, stateReplays: none };
    const states = { ...slots, snapshotStart: none, snapshotRows: none, snapshotSlots: none };
    expect(readBatch(call.arrays)).toEqual({ ...batch, ...states, returnedRows: expected });
    const withStates = {
      stateSlots: Int32Array.of(3, 1),
      stateDrafts: Int32Array.of(0, 1),
      stateReplays: Int32Array.of(2, 0),
      snapshotStart: Int32Array.of(0, 1, 3),
      snapshotRows: Int32Array.of(1, 3, 4),
      snapshotSlots: Int32Array.of(7, 8, 5),
    };
    // Columns are longer than what a batch uses of them.
    const longer = Object.fromEntries(
      Object.entries(withStates).map(([name, column]) => [name, Int32Array.of(...column, 99)]),
    );
    pair.call(CALL_KINDS.forward, batchArrays({ ...batch, ...longer }, true));
    expect(readBatch(pair.read()!.arrays)).toEqual({ ...batch, ...withStates, returnedRows: [] });
    const seen = {
      ...batch,
      gridPositions: Int32Array.from({ length: 8 }, (_, i) => i),
      pictures: Int32Array.of(1, 2),
    };
    pair.call(CALL_KINDS.forward, batchArrays({ ...seen, ...longer }, true));
    expect(readBatch(pair.read()!.arrays)).toEqual({ ...seen, ...withStates, returnedRows: [] });
  });

  test('what does not fit comes in pieces', () => {
    const pair = new Pair(1280);
    const a = Float32Array.from({ length: 900 }, (_, i) => i);
    const b = Float32Array.of(1, 2);
    const part = { op: 3, firstRow: 4, rows: 1, rank: 2, a, b };
    pair.call(CALL_KINDS.putAdapter, adapterArrays(5, [part, { ...part, op: 9 }]));
    expect(pair.pieces).toBe(3);
    expect(readAdapter(pair.read()!.arrays)).toEqual({ slot: 5, parts: [part, { ...part, op: 9 }] });
  });

  test('changed bytes are refused', () => {
    const pair = new Pair(1024);
    pair.call(CALL_KINDS.areFinite, [Int32Array.of(1, 2, 3)]);
    new Uint8Array(pair.memory)[256 + 80]! ^= 1;
    expect(() => pair.read()).toThrow('The bytes of a call are not those that rank 0 wrote.');
  });

  test('a call that was written and not begun is written over', () => {
    const pair = new Pair(1024);
    pair.writer.write(CALL_KINDS.areFinite, [Int32Array.of(1)]);
    pair.call(CALL_KINDS.copyBlocks, [Int32Array.of(2), Int32Array.of(3)]);
    expect(pair.read()).toMatchObject({ kind: CALL_KINDS.copyBlocks });
    expect(pair.answered).toBe(pair.rung);
  });

  test('the writer waits before there are more calls than the table has places', () => {
    const pair = new Pair(1 << 16);
    for (let i = 0; i < 64; i++) pair.call(CALL_KINDS.areFinite, [Int32Array.of(i)]);
    expect([pair.waits, pair.answered]).toEqual([0, 0]);
    pair.call(CALL_KINDS.areFinite, [Int32Array.of(64)]);
    expect([pair.waits, pair.answered]).toEqual([1, 64]);
    expect(asInts(pair.read()!.arrays[0]!)).toEqual(Int32Array.of(64));
  });

  test('whatever is written while others read: each call is read as it was written, in order', () => {
    let waits = 0;
    let pieces = 0;
    const history = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.integer({ min: 0, max: 300 }) },
        { weight: 1, arbitrary: fc.constant('long' as const) },
        { weight: 2, arbitrary: fc.constant('read' as const) },
      ),
      { maxLength: 120 },
    );
    fc.assert(
      fc.property(history, fc.constantFrom(2048, 1 << 16), (changes, bytes) => {
        const pair = new Pair(bytes);
        const written: number[] = [];
        for (const [i, change] of changes.entries()) {
          if (change !== 'read') {
            const words = change === 'long' ? bytes / 3 : change;
            pair.call(CALL_KINDS.areFinite, [new Int32Array(words).fill(i), Int32Array.of(i)]);
            written.push(i);
          } else if (pair.answered < pair.rung) pair.read();
        }
        while (pair.answered < pair.rung) pair.read();
        const read = pair.seen.filter((call) => call !== null);
        expect(read.map(({ arrays }) => asInts(arrays[1]!)[0])).toEqual(written);
        for (const { arrays } of read) {
          const [filled, [mark]] = [asInts(arrays[0]!), asInts(arrays[1]!)];
          expect(filled.every((value) => value === mark)).toBe(true);
        }
        waits += pair.waits;
        pieces += pair.pieces;
      }),
    );
    expect(Math.min(waits, pieces)).toBeGreaterThan(20);
  });
});
