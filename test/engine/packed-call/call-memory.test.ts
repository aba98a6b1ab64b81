import { describe, expect, it } from 'vitest';
import { PackedArrays } from '../../../engine/batch/packed-arrays.js';
import { SamplingRows } from '../../../engine/batch/sampling-rows.js';
import { SamplingResults } from '../../../engine/decoding/sampling-results.js';
import { CALL_HEADER } from '../../../engine/packed-call/call-header.js';
import type { CallLimits } from '../../../engine/packed-call/call-limits.js';
import { CallMemory } from '../../../engine/packed-call/call-memory.js';

const ROPE = { frequencies: new Float32Array(4), scales: new Float32Array(1) };
const LINE = 64;

/** Whole numbers below a limit, the same ones in each run. */
function numbers(seed: number) {
  let state = seed;
  return (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function someLimits(next: (limit: number) => number): CallLimits {
  return {
    tokens: 1 + next(600),
    sequences: 1 + next(70),
    logitRows: 1 + next(70),
    maxBlocksPerSequence: 1 + next(40),
    newBlocks: next(300),
    history: next(5000),
    snapshots: next(40),
  };
}

function partsOf(memory: CallMemory) {
  const { limits } = memory;
  return {
    batch: new PackedArrays(limits, ROPE, memory.batch),
    sampling: new SamplingRows(limits.logitRows, limits.history, memory.sampling),
    output: new SamplingResults(limits.logitRows, memory.output),
  };
}

type Numbers = Int32Array | Float32Array | Float64Array | BigUint64Array | Uint8Array;

/** The arrays of an object that lie in this memory, by name. */
function arraysIn(buffer: ArrayBufferLike, part: object): [string, Numbers][] {
  const isInside = (value: unknown) => ArrayBuffer.isView(value) && value.buffer === buffer;
  return Object.entries(part).filter(([, value]) => isInside(value)) as [string, Numbers][];
}

function callIn(buffer: ArrayBufferLike, limits: CallLimits) {
  const memory = new CallMemory(buffer, limits);
  const { batch, sampling, output } = partsOf(memory);
  const groups = [[['header', memory.header]] as [string, Numbers][]];
  for (const part of [batch, sampling, output]) groups.push(arraysIn(buffer, part));
  return { memory, batch, sampling, output, groups };
}

const LIMITS: CallLimits = {
  tokens: 10,
  sequences: 3,
  logitRows: 4,
  maxBlocksPerSequence: 2,
  newBlocks: 5,
  history: 20,
};

describe('CallMemory', () => {
  it('lays out a call of any limits: each array once, aligned, none over another, and no byte behind the size', () => {
    const next = numbers(5);
    for (let round = 0; round < 200; round++) {
      const limits = someLimits(next);
      const size = CallMemory.sizeOf(limits);
      const { groups } = callIn(new ArrayBuffer(size), limits);
      expect(groups.map((group) => group.length)).toEqual([1, 15, 18, 6]);
      const arrays = groups.flat().map(([, array]) => array);
      for (const array of arrays) expect(array.byteOffset % array.BYTES_PER_ELEMENT).toBe(0);
      let end = 0;
      for (const { byteOffset, byteLength } of arrays.toSorted((a, b) => a.byteOffset - b.byteOffset)) {
        expect(byteOffset).toBeGreaterThanOrEqual(end);
        expect(byteOffset - end).toBeLessThan(LINE);
        end = Math.max(end, byteOffset + byteLength);
      }
      expect(end).toBe(size);
    }
  });

  it('begins each part at a cache line of its own', () => {
    const next = numbers(6);
    for (let round = 0; round < 50; round++) {
      const limits = someLimits(next);
      const { groups } = callIn(new ArrayBuffer(CallMemory.sizeOf(limits)), limits);
      const firsts = groups.map((group) => Math.min(...group.map(([, array]) => array.byteOffset)));
      expect(firsts.every((first) => first % LINE === 0)).toBe(true);
      expect(new Set(firsts).size).toBe(4);
    }
  });

  it('gives every array the entries that the limits ask for', () => {
    const { batch, sampling, output } = callIn(new ArrayBuffer(CallMemory.sizeOf(LIMITS)), LIMITS);
    expect(batch.maxBlocks).toBe(2);
    for (const name of ['tokenIds', 'positions', 'slots'] as const) expect(batch[name]).toHaveLength(10);
    expect(batch.queryStart).toHaveLength(4);
    for (const name of ['contextLength', 'ropeRows'] as const) expect(batch[name]).toHaveLength(3);
    expect(batch.blockTables).toHaveLength(6);
    expect(batch.logitRows).toHaveLength(4);
    expect(batch.newBlocks).toHaveLength(5);
    expect(sampling.history).toHaveLength(20);
    expect(sampling.seed).toHaveLength(4);
    expect(output.topStart).toHaveLength(5);
  });

  it('shows whoever has the same memory and limits the same call', () => {
    const next = numbers(7);
    for (let round = 0; round < 20; round++) {
      const limits = someLimits(next);
      const buffer = new SharedArrayBuffer(CallMemory.sizeOf(limits));
      const here = callIn(buffer, limits);
      const there = callIn(buffer, limits);
      for (const [, array] of here.groups.slice(1).flat()) {
        for (let i = 0; i < array.length; i++) {
          if (array instanceof BigUint64Array) array[i] = BigInt(next(2 ** 32));
          else array[i] = next(200);
        }
      }
      here.batch.numTokens = limits.tokens;
      here.batch.numSequences = limits.sequences;
      here.batch.numLogitRows = limits.logitRows;
      here.batch.numNewBlocks = limits.newBlocks;
      here.sampling.numRows = limits.logitRows;
      expect(there.groups).toEqual(here.groups);
      expect(there.batch.numTokens).toBe(limits.tokens);
      expect(there.batch.numSequences).toBe(limits.sequences);
      expect(there.batch.numLogitRows).toBe(limits.logitRows);
      expect(there.batch.numNewBlocks).toBe(limits.newBlocks);
      expect(there.sampling.numRows).toBe(limits.logitRows);
      here.batch.clear();
      here.sampling.clear();
      expect([...there.memory.header]).toEqual(Object.keys(CALL_HEADER).map(() => 0));
    }
  });

  it('refuses memory that is too small, and says by how much', () => {
    const bytes = CallMemory.sizeOf(LIMITS);
    expect(() => new CallMemory(new ArrayBuffer(bytes - 1), LIMITS)).toThrow(
      new RangeError(
        `The memory of a packed call has ${bytes - 1} bytes, but ${bytes} are needed for 10 tokens of 3 sequences.`,
      ),
    );
    expect(() => callIn(new ArrayBuffer(bytes + 1), LIMITS)).not.toThrow();
  });

  it('has columns that outgrow it move out, with nothing else touched', () => {
    const { output, groups, memory } = callIn(new ArrayBuffer(CallMemory.sizeOf(LIMITS)), LIMITS);
    const inside = output.topTokens.length;
    output.tokens.fill(3);
    output.makeRoom({ numRows: 1, numTopLogProbs: Int32Array.of(inside) });
    expect(output.topTokens.buffer).toBe(memory.output.buffer);
    output.makeRoom({ numRows: 1, numTopLogProbs: Int32Array.of(inside + 1) });
    expect(output.topTokens.length).toBeGreaterThan(inside);
    expect(output.topTokens.buffer).not.toBe(memory.output.buffer);
    expect(output.topLogProbs.buffer).not.toBe(memory.output.buffer);
    expect(output.tokens.buffer).toBe(memory.output.buffer);
    expect(groups.flat().find(([name]) => name === 'tokens')![1]).toEqual(Int32Array.of(3, 3, 3, 3));
  });
});
