import type { ExecutorOptions } from '../executors/executor.js';
import type { AdapterPart } from '../executors/native/adapter-parts.js';
import type { PackedBatch, PromptTableRows, ReturnedRows } from '../packed-call/packed-batch.js';
import { asFloats, asInts, type CallArray } from './call-bytes.js';

/** What the other ranks need to open the same executor. */
export interface OpenCall {
  options: Omit<ExecutorOptions, 'seat' | 'heartbeat'>;
  /** What names the model's weights. */
  model: string;
}

export function openArrays(call: OpenCall): CallArray[] {
  return [new TextEncoder().encode(JSON.stringify(call))];
}

export function readOpen([bytes]: readonly Uint8Array[]): OpenCall {
  return JSON.parse(Buffer.from(bytes!).toString('utf8')) as OpenCall;
}

/** Numbers in front of a batch's arrays. */
const FIXED_NUMBERS = 12;
const NO_STATES = new Int32Array(0);

/**
 * The arrays of a batch as far as they are used, without memory for returned logits, which rank 0 alone has. Of returned rows there are
 * those of tokens, since all ranks compute their logits.
 * @param hasStates whether the network has states, so that the batch says where they are
 */
export function batchArrays(batch: PackedBatch, hasStates: boolean): CallArray[] {
  const { numTokens, numSequences, numLogitRows, numNewBlocks, maxBlocks } = batch;
  const returned = (batch.returnedRows ?? []).filter(({ of }) => of === 'tokens');
  const tables = batch.promptTables ?? [];
  const { tokenTypes, adapterSlots, gridPositions, pictures } = batch;
  const given = [tokenTypes, adapterSlots, gridPositions, pictures, hasStates ? true : null];
  const optional = given.map((one) => (one == null ? 0 : 1));
  const numbers = Int32Array.of(
    ...[numTokens, numSequences, numLogitRows, numNewBlocks, maxBlocks],
    ...[...optional, returned.length, tables.length],
    ...[...returned, ...tables].flatMap(({ first, count }) => [first, count]),
  );
  return [
    numbers,
    batch.tokenIds.subarray(0, numTokens),
    batch.positions.subarray(0, numTokens),
    batch.slots.subarray(0, numTokens),
    batch.queryStart.subarray(0, numSequences + 1),
    batch.contextLength.subarray(0, numSequences),
    batch.blockTables.subarray(0, numSequences * maxBlocks),
    batch.logitRows.subarray(0, numLogitRows),
    batch.newBlocks.subarray(0, numNewBlocks),
    batch.ropeRows.subarray(0, numSequences),
    batch.ropeFrequencies,
    batch.ropeScales,
    ...(tokenTypes === undefined ? [] : [tokenTypes.subarray(0, numTokens)]),
    ...(adapterSlots ? [adapterSlots.subarray(0, numSequences)] : []),
    ...(gridPositions ? [gridPositions.subarray(0, 2 * numTokens)] : []),
    ...(pictures ? [pictures] : []),
    ...(hasStates ? stateArrays(batch) : []),
    ...tables.map(({ table }) => table),
  ];
}

function stateArrays({ numSequences, snapshotStart, snapshotRows, snapshotSlots, ...batch }: PackedBatch) {
  const made = snapshotStart[numSequences]!;
  return [
    batch.stateSlots.subarray(0, numSequences),
    batch.stateDrafts.subarray(0, numSequences),
    batch.stateReplays.subarray(0, numSequences),
    snapshotStart.subarray(0, numSequences + 1),
    snapshotRows.subarray(0, made),
    snapshotSlots.subarray(0, made),
  ];
}

const BATCH_ARRAYS = 12;

/** The batch of a forward, over the call's memory. */
export function readBatch(arrays: readonly Uint8Array[]): PackedBatch {
  const numbers = asInts(arrays[0]!);
  const [
    numTokens,
    numSequences,
    numLogitRows,
    numNewBlocks,
    maxBlocks,
    hasTypes,
    hasSlots,
    hasGrids,
    hasPictures,
    hasStates,
    returned,
    tables,
  ] = Array.from(numbers.subarray(0, FIXED_NUMBERS)) as Twelve<number>;
  const spans = Array.from({ length: returned + tables }, (_, i) => ({
    first: numbers[FIXED_NUMBERS + 2 * i]!,
    count: numbers[FIXED_NUMBERS + 2 * i + 1]!,
  }));
  let next = BATCH_ARRAYS;
  const ints = (index: number) => asInts(arrays[index]!);
  return {
    ...{ numTokens, numSequences, numLogitRows, numNewBlocks, maxBlocks },
    tokenIds: ints(1),
    positions: ints(2),
    slots: ints(3),
    queryStart: ints(4),
    contextLength: ints(5),
    blockTables: ints(6),
    logitRows: ints(7),
    newBlocks: ints(8),
    ropeRows: ints(9),
    ropeFrequencies: asFloats(arrays[10]!),
    ropeScales: asFloats(arrays[11]!),
    ...(hasTypes === 1 ? { tokenTypes: ints(next++) } : {}),
    ...(hasSlots === 1 ? { adapterSlots: ints(next++) } : {}),
    ...(hasGrids === 1 ? { gridPositions: ints(next++) } : {}),
    ...(hasPictures === 1 ? { pictures: ints(next++) } : {}),
    stateSlots: hasStates === 1 ? ints(next++) : NO_STATES,
    stateDrafts: hasStates === 1 ? ints(next++) : NO_STATES,
    stateReplays: hasStates === 1 ? ints(next++) : NO_STATES,
    snapshotStart: hasStates === 1 ? ints(next++) : NO_STATES,
    snapshotRows: hasStates === 1 ? ints(next++) : NO_STATES,
    snapshotSlots: hasStates === 1 ? ints(next++) : NO_STATES,
    returnedRows: spans
      .slice(0, returned)
      .map((span): ReturnedRows => ({ of: 'tokens', ...span, logits: null, logProbs: null })),
    promptTables: spans
      .slice(returned)
      .map((span): PromptTableRows => ({ ...span, table: asFloats(arrays[next++]!) })),
  };
}

type Twelve<T> = [T, T, T, T, T, T, T, T, T, T, T, T];

/** The arrays of an adapter's parts: numbers, then A and B of each; parts with the same A send it once. */
export function adapterArrays(slot: number, parts: readonly AdapterPart[]): CallArray[] {
  const shared = [...new Set(parts.map(({ a }) => a))];
  const numbers = [slot, parts.length, shared.length];
  for (const { op, firstRow, rows, rank, a } of parts)
    numbers.push(op, firstRow, rows, rank, shared.indexOf(a));
  return [Int32Array.from(numbers), ...shared, ...parts.map(({ b }) => b)];
}

const NUMBERS_OF_PART = 5;

export function readAdapter([numbers, ...arrays]: readonly Uint8Array[]): {
  slot: number;
  parts: AdapterPart[];
} {
  const ints = asInts(numbers!);
  const [slot, count, shared] = [ints[0]!, ints[1]!, ints[2]!];
  const parts = Array.from({ length: count }, (_, i): AdapterPart => {
    const [op, firstRow, rows, rank, a] = ints.subarray(3 + NUMBERS_OF_PART * i) as unknown as number[];
    return {
      ...{ op: op!, firstRow: firstRow!, rows: rows!, rank: rank! },
      a: asFloats(arrays[a!]!),
      b: asFloats(arrays[shared + i]!),
    };
  });
  return { slot, parts };
}
