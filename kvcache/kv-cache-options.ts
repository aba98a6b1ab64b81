export const DEFAULT_TOKENS_PER_BLOCK = 32;
const GREATEST_SLOT = 2 ** 31 - 1;

export interface KvCacheOptions {
  numBlocks: number;
  /** Default 32. Executors and their kernels ask for powers of two; the numbers here do not depend on it. */
  tokensPerBlock?: number;
  /** Longest sequence, prompt and generated tokens together. */
  maxSeqLen: number;
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
  /** Blocks of the longest sequence. */
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
  const maxBlocksPerSequence = Math.ceil(maxSeqLen / tokensPerBlock);
  if (numBlocks < maxBlocksPerSequence) {
    throw new RangeError(
      `The KV cache has ${numBlocks} blocks of ${tokensPerBlock} tokens, but one sequence of maxSeqLen = ` +
        `${maxSeqLen} needs ${maxBlocksPerSequence}. Give it more memory or lower maxSeqLen.`,
    );
  }
  return { numBlocks, tokensPerBlock, maxSeqLen, maxBlocksPerSequence, numSecondaryBlocks };
}

function checkAtLeastOne(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1) {
    throw new RangeError(`${name} is ${value}; a whole number of at least 1 is expected.`);
  }
}
