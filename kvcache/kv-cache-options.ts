import { type NamedText, option, says } from '../base/named-text.js';
import { retell } from '../base/skein-error.js';
import { AttentionWindow } from './attention-window.js';

export const DEFAULT_TOKENS_PER_BLOCK = 32;
const GREATEST_SLOT = 2 ** 31 - 1;

export interface KvCacheOptions {
  numBlocks: number;
  /** Default 32. Executors and their kernels ask for powers of two; the numbers here do not depend on it. */
  tokensPerBlock?: number;
  /** Longest sequence, prompt and generated tokens together. */
  maxSeqLen: number;
  /** Tokens that a token attends to; a sequence holds blocks for no more. Absent, or maxSeqLen and more: no window. */
  maxAttentionWindow?: number;
  /** How many tokens of the window are the first ones of the sequence, which stay; default 0. See AttentionWindow. */
  sinkTokenLength?: number;
  /** Full blocks are kept after their sequence has ended, and shared by sequences that begin alike. Default false. */
  enableBlockReuse?: boolean;
  /** A block of which only the first tokens are common is reused too; default true. */
  enablePartialReuse?: boolean;
  /** Partial reuse copies the block; default true. Without it only unused leaves are taken over, and others not used. */
  copyOnPartialReuse?: boolean;
  /** With reuse: blocks of a secondary pool, to which blocks are swapped out instead of being evicted; default 0. */
  numSecondaryBlocks?: number;
  /** Lowest retention priority (0 to 100) with which a block is swapped out; default 30. */
  secondaryOffloadMinPriority?: number;
  /** Events kept until they are drained; default 0: none. */
  maxEvents?: number;
}

/** The sizes that a KV cache runs with. */
export interface KvCacheSizes {
  numBlocks: number;
  tokensPerBlock: number;
  maxSeqLen: number;
  /** null: sequences are held whole. */
  window: AttentionWindow | null;
  /** Entries of the longest table. */
  maxBlocksPerSequence: number;
  /** Numbered behind the blocks of the primary pool, which alone are in tables. */
  numSecondaryBlocks: number;
}

/** Throws a RangeError if the options make no sense or if one sequence of maxSeqLen does not fit. */
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
  if ((numBlocks + numSecondaryBlocks) * tokensPerBlock > GREATEST_SLOT) {
    throw new RangeError(
      `${numBlocks + numSecondaryBlocks} blocks of ${tokensPerBlock} tokens are more than ${GREATEST_SLOT} slots, ` +
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

/** null where no sequence is longer than the window. Throws a RangeError for a window that makes no sense. */
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

/** Blocks of a sequence of maxSeqLen tokens. */
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
