import { option, says } from '../base/named-text.js';
import { retell } from '../base/skein-error.js';

export interface WindowOptions {
  /** Tokens that a token attends to, itself included. */
  maxAttentionWindow: number;
  /** Number of these tokens that are the first ones of the sequence, which stay for ever; default 0. */
  sinkTokenLength?: number | undefined;
  tokensPerBlock: number;
}

/**
 * Places of a sequence's tokens when only a window of them is kept (and, as in StreamingLLM, the first ones, the sinks).
 * The token at position q attends to the positions t <= q with t < sinks or t > q - (window - sinks); without sinks
 * these are the last `window` tokens. Positions, RoPE included, are those of the whole sequence.
 *
 * Blocks are counted as without a window: block b holds positions b * tokensPerBlock and on. Blocks with sinks keep
 * their entries of the table, the others take turns in the rest of it:
 *
 *   tokensPerBlock 4, window 11, sinks 2      sinkBlocks ceil(2 / 4) = 1, ringBlocks ceil(9 / 4) = 3
 *
 *   position    0 1 2 3 | 4 ..  7 | 8 .. 11 | 12 .. 15 | 16 .. 19 | 20 ..
 *   entry          0    |    1    |    2    |    3     |    1     |   2
 *
 *   before the token at 21     entry  0 [ 0  1  2  3 ]     0 and 1 are sinks; 2 and 3 are not attended to any more
 *                                     1 [16 17 18 19 ]
 *                                     2 [20  9 10 11 ]     21 takes the place of 9, which is 12 back
 *                                     3 [12 13 14 15 ]     21 attends to 13 .. 21
 *
 * So a table has at most ceil(window / tokensPerBlock) entries without sinks, and ceil((window + bubble) /
 * tokensPerBlock) with them, where the bubble is the part of their last block that the sinks leave over.
 */
export class AttentionWindow {
  readonly maxAttentionWindow: number;
  readonly sinkTokenLength: number;
  /** Tokens that the schedulers count: the window, and the bubble after the sinks. */
  readonly cachedTokens: number;
  readonly sinkBlocks: number;
  readonly ringBlocks: number;

  /** @throws RangeError naming the option that does not fit */
  constructor({ maxAttentionWindow, sinkTokenLength = 0, tokensPerBlock }: WindowOptions) {
    if (!Number.isInteger(maxAttentionWindow) || maxAttentionWindow < 1) {
      throw retell(
        new RangeError(),
        says`${option('maxAttentionWindow')} is ${maxAttentionWindow}; a whole number of at least 1 is expected.`,
      );
    }
    if (!Number.isInteger(sinkTokenLength) || sinkTokenLength < 0 || sinkTokenLength >= maxAttentionWindow) {
      throw retell(
        new RangeError(),
        says`${option('sinkTokenLength')} is ${sinkTokenLength}; a whole number from 0 to ${maxAttentionWindow - 1}, less than ${option('maxAttentionWindow')} = ${maxAttentionWindow}, is expected.`,
      );
    }
    this.maxAttentionWindow = maxAttentionWindow;
    this.sinkTokenLength = sinkTokenLength;
    this.sinkBlocks = Math.ceil(sinkTokenLength / tokensPerBlock);
    this.ringBlocks = Math.ceil((maxAttentionWindow - sinkTokenLength) / tokensPerBlock);
    const bubble = this.sinkBlocks * tokensPerBlock - sinkTokenLength;
    this.cachedTokens = maxAttentionWindow + bubble;
  }

  /** The window's options as executors and block managers take them. */
  get options(): { maxAttentionWindow: number; sinkTokenLength: number } {
    return { maxAttentionWindow: this.maxAttentionWindow, sinkTokenLength: this.sinkTokenLength };
  }

  /** Number of entries in the longest table. */
  get maxBlocks(): number {
    return this.sinkBlocks + this.ringBlocks;
  }

  /** Entry of the table in which a sequence's block number `block` lies. */
  entryOf(block: number): number {
    const { sinkBlocks, ringBlocks } = this;
    return block < sinkBlocks ? block : sinkBlocks + ((block - sinkBlocks) % ringBlocks);
  }
}
