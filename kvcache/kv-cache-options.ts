import { MAX_INT32 } from '../base/int32.js';
import { type NamedText, option, says } from '../base/named-text.js';
import { retell } from '../base/skein-error.js';
import { AttentionWindow } from './attention-window.js';

export const DEFAULT_TOKENS_PER_BLOCK = 32;

export interface KvCacheOptions {
  numBlocks: number;
  /**
   * Tokens in a block; default 32. Executors and their kernels ask for powers of two; the numbers here do not depend on
   * it.
   */
  tokensPerBlock?: number;
  /** Most tokens of a sequence, prompt and generated ones together. */
  maxSeqLen: number;
  /** Tokens that a token attends to; a sequence holds blocks for no more. Absent, or at least maxSeqLen: no window. */
  maxAttentionWindow?: number;
  /**
   * Number of the window's tokens that are the first ones of the sequence, which stay; default 0. See AttentionWindow.
   */
  sinkTokenLength?: number;
  /** Keeps full blocks after their sequence has ended, for other sequences that begin alike. Default false. */
  enableBlockReuse?: boolean;
  /** Reuses a block of which only the first tokens are common, too; default true. */
  enablePartialReuse?: boolean;
  /**
   * Partial reuse copies the block; default true. If false, only unused leaves are taken over, and other blocks are not
   * used.
   */
  copyOnPartialReuse?: boolean;
  /**
   * With reuse: number of blocks in a secondary pool, to which blocks are swapped out instead of being evicted; default
   * 0.
   */
  numSecondaryBlocks?: number;
  /** Lowest retention priority (0 to 100) with which a block is swapped out; default 30. */
  secondaryOffloadMinPriority?: number;
  /** Slots for the states of sequences, where the model has states; absent: it has none. */
  states?: StateSizes;
  /** Most events kept until they are drained; default 0: none. */
  maxEvents?: number;
  /** With reuse: lists blocks that become cached, so that they can be written to a disk; default false. */
  listsUnwritten?: boolean;
}

/** Slots for the states of sequences; see SequenceStates. */
export interface StateSizes {
  /** For sequences that run. */
  numSlots: number;
  /** For snapshots, without which no sequence shares blocks. */
  numSnapshots: number;
  /** Tokens of a prompt between two snapshots, in whole blocks, rounded up; default 1024. */
  interval?: number;
  /** Most tokens of a sequence's draft; default 0: sequences have none. */
  draftRows?: number;
}

export const DEFAULT_STATE_INTERVAL = 1024;

/** The sizes that a KV cache runs with. */
export interface KvCacheSizes {
  numBlocks: number;
  tokensPerBlock: number;
  maxSeqLen: number;
  /** Attention window; null: sequences are held whole. */
  window: AttentionWindow | null;
  /** Number of entries in the longest table. */
  maxBlocksPerSequence: number;
  /**
   * Number of secondary blocks, numbered after those of the primary pool; tables name primary blocks only.
   */
  numSecondaryBlocks: number;
}

/** @throws RangeError if the options make no sense or if one sequence of maxSeqLen does not fit */
export function resolveSizes(options: KvCacheOptions): KvCacheSizes {
  const { numBlocks, maxSeqLen, tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK } = options;
  const { numSecondaryBlocks = 0 } = options;
  checkAtLeastOne('tokensPerBlock', tokensPerBlock);
  checkAtLeastOne('numBlocks', numBlocks);
  checkAtLeastOne('maxSeqLen', maxSeqLen);
  if (!Number.isInteger(numSecondaryBlocks) || numSecondaryBlocks < 0) {
    throw new RangeError(
      `numSecondaryBlocks is ${numSecondaryBlocks}; a whole number of at least 0 is expected.`,
    );
  }
  if ((numBlocks + numSecondaryBlocks) * tokensPerBlock > MAX_INT32) {
    throw new RangeError(
      `${numBlocks + numSecondaryBlocks} blocks of ${tokensPerBlock} tokens are more than ${MAX_INT32} slots, ` +
        'the most that a 32-bit slot number can name.',
    );
  }
  const window = resolveWindow({ ...options, tokensPerBlock });
  const maxBlocksPerSequence = longestTable(maxSeqLen, tokensPerBlock, window);
  if (numBlocks < maxBlocksPerSequence) {
    const [within, which]: [NamedText, string] = window
      ? [
          says` in a window of ${option('maxAttentionWindow')} = ${window.maxAttentionWindow}`,
          'maxAttentionWindow',
        ]
      : ['', 'maxSeqLen'];
    throw retell(
      new RangeError(),
      says`The KV cache has ${numBlocks} blocks of ${tokensPerBlock} tokens, but one sequence of ${option('maxSeqLen')} = ${maxSeqLen}${within} needs ${maxBlocksPerSequence}. Give it more memory or lower ${option(which)}.`,
    );
  }
  return { numBlocks, tokensPerBlock, maxSeqLen, window, maxBlocksPerSequence, numSecondaryBlocks };
}

/**
 * The attention window, or null if no sequence is longer than it. @throws RangeError for a window that makes no sense
 */
export function resolveWindow(options: {
  maxSeqLen: number;
  tokensPerBlock: number;
  maxAttentionWindow?: number | undefined;
  sinkTokenLength?: number | undefined;
}): AttentionWindow | null {
  const { maxAttentionWindow, sinkTokenLength = 0, tokensPerBlock, maxSeqLen } = options;
  if (maxAttentionWindow === undefined) {
    if (sinkTokenLength === 0) return null;
    throw retell(
      new RangeError(),
      says`${option('sinkTokenLength')} is ${sinkTokenLength}, but there is no ${option('maxAttentionWindow')} for sinks to be in.`,
    );
  }
  const window = new AttentionWindow({ maxAttentionWindow, sinkTokenLength, tokensPerBlock });
  return maxAttentionWindow < maxSeqLen ? window : null;
}

/** Number of blocks in a sequence of maxSeqLen tokens. */
export function longestTable(
  maxSeqLen: number,
  tokensPerBlock: number,
  window: AttentionWindow | null,
): number {
  return Math.min(Math.ceil(maxSeqLen / tokensPerBlock), window?.maxBlocks ?? Number.POSITIVE_INFINITY);
}

function checkAtLeastOne(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1) {
    throw retell(
      new RangeError(),
      says`${option(name)} is ${value}; a whole number of at least 1 is expected.`,
    );
  }
}
