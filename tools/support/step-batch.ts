import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';

/** A sequence in a step. */
export interface StepSequence {
  /** All tokens up to and with the last one of this step. */
  tokens: readonly number[];
  /** Number of these tokens that are in the cache already. */
  cached: number;
  blocks: readonly number[];
  /** Rows whose logits are wanted; the last one if not given. */
  logits?: 'last' | 'all' | 'none';
  ropeRow?: number;
  /** Slot of its adapter; default: none. */
  adapter?: number;
  /** Slot of its states; default: they are not kept. */
  stateSlot?: number;
  /** Rows at its end that are a draft, and rows of its former draft that come before these; default 0. */
  drafts?: number;
  replays?: number;
}

export interface StepOptions {
  tokensPerBlock: number;
  inverseFrequencies: Float32Array;
  ropeScale?: number;
  newBlocks?: readonly number[];
  window?: AttentionWindow | null;
}

/** Writes a PackedBatch as the loop does, at its exact size. */
export function makeStepBatch(sequences: readonly StepSequence[], options: StepOptions): PackedBatch {
  const { tokensPerBlock, inverseFrequencies, ropeScale = 1, newBlocks = [], window } = options;
  const maxBlocks = Math.max(...sequences.map((sequence) => sequence.blocks.length));
  const tokenIds: number[] = [];
  const positions: number[] = [];
  const slots: number[] = [];
  const logitRows: number[] = [];
  const queryStart = [0];
  const blockTables = new Int32Array(sequences.length * maxBlocks);
  for (const [s, { tokens, cached, blocks, logits = 'last' }] of sequences.entries()) {
    blockTables.set(blocks, s * maxBlocks);
    for (let position = cached; position < tokens.length; position++) {
      const wanted = logits === 'all' || (logits === 'last' && position === tokens.length - 1);
      if (wanted) logitRows.push(tokenIds.length);
      tokenIds.push(tokens[position]!);
      positions.push(position);
      const index = Math.floor(position / tokensPerBlock);
      const block = blocks[window?.entryOf(index) ?? index]!;
      slots.push(block * tokensPerBlock + (position % tokensPerBlock));
    }
    queryStart.push(tokenIds.length);
  }
  return {
    numTokens: tokenIds.length,
    numSequences: sequences.length,
    numLogitRows: logitRows.length,
    numNewBlocks: newBlocks.length,
    maxBlocks,
    tokenIds: Int32Array.from(tokenIds),
    positions: Int32Array.from(positions),
    slots: Int32Array.from(slots),
    queryStart: Int32Array.from(queryStart),
    contextLength: Int32Array.from(sequences, (sequence) => sequence.tokens.length),
    blockTables,
    logitRows: Int32Array.from(logitRows),
    newBlocks: Int32Array.from(newBlocks),
    stateSlots: Int32Array.from(sequences, ({ stateSlot = -1 }) => stateSlot),
    stateDrafts: Int32Array.from(sequences, ({ drafts = 0 }) => drafts),
    stateReplays: Int32Array.from(sequences, ({ replays = 0 }) => replays),
    snapshotStart: new Int32Array(sequences.length + 1),
    snapshotRows: new Int32Array(0),
    snapshotSlots: new Int32Array(0),
    ropeRows: Int32Array.from(sequences, (sequence) => sequence.ropeRow ?? 0),
    ropeFrequencies: inverseFrequencies,
    ropeScales: Float32Array.of(ropeScale),
    adapterSlots: sequences.some(({ adapter }) => adapter !== undefined)
      ? Int32Array.from(sequences, ({ adapter = -1 }) => adapter)
      : null,
  };
}
