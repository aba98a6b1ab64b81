import { describe, expect, test } from 'vitest';
import { CALL_KINDS, CallReader, CallWriter } from '../../../engine/ranks/call-bytes.js';
import { adapterArrays, batchArrays, readAdapter, readBatch } from '../../../engine/ranks/call-codec.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';

function pair(bytes: number) {
  const memory = new ArrayBuffer(bytes);
  const reader = new CallReader(memory);
  let pieces = 0;
  const writer = new CallWriter(memory, () => {
    pieces++;
    expect(reader.read()).toBeNull();
  });
  return { memory, reader, writer, pieces: () => pieces };
}

describe('the bytes of a call', () => {
  test('a batch comes as it was, with what is rare', () => {
    const { reader, writer } = pair(1 << 16);
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
    writer.write(CALL_KINDS.forward, batchArrays({ ...batch, returnedRows }));
    const call = reader.read()!;
    expect(call.kind).toBe(CALL_KINDS.forward);
    const expected = [{ of: 'tokens', first: 1, count: 2, logits: null, logProbs: null }];
    expect(readBatch(call.arrays)).toEqual({ ...batch, returnedRows: expected });
  });

  test('what does not fit comes in pieces', () => {
    const { reader, writer, pieces } = pair(1024);
    const a = Float32Array.from({ length: 900 }, (_, i) => i);
    const b = Float32Array.of(1, 2);
    const part = { op: 3, firstRow: 4, rows: 1, rank: 2, a, b };
    writer.write(CALL_KINDS.putAdapter, adapterArrays(5, [part, { ...part, op: 9 }]));
    expect(pieces()).toBe(3);
    expect(readAdapter(reader.read()!.arrays)).toEqual({ slot: 5, parts: [part, { ...part, op: 9 }] });
  });

  test('changed bytes are refused', () => {
    const { memory, reader, writer } = pair(1024);
    writer.write(CALL_KINDS.areFinite, [Int32Array.of(1, 2, 3)]);
    new Uint8Array(memory)[80]! ^= 1;
    expect(() => reader.read()).toThrow('The bytes of a call are not those that rank 0 wrote.');
  });
});
