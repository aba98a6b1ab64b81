import type { EncoderBatchLimits, EncoderSequence } from '../../callbacks/encoder-messages.js';
import { type EncoderConfig, type EncoderHead, tokenWidth } from '../../models/encoder-config.js';
import { PackedArrays } from '../batch/packed-arrays.js';
import type { RopeTable } from '../batch/rope-table.js';

/** Block size of encoders, chosen so that a step of the attention lies in one block. */
export const ENCODER_TOKENS_PER_BLOCK = 32;

/** Most rows that come out of a batch: one for each sequence, or where a head gives something of tokens, one for each. */
export function encoderRows(
  { maxNumTokens, maxNumSequences }: EncoderBatchLimits,
  head: EncoderHead,
): number {
  return tokenWidth(head) === 0 ? maxNumSequences : maxNumTokens;
}

/** Number of blocks that suffices for any batch within the limits: each sequence begins at a block of its own. */
export function encoderBlocks({ maxNumTokens, maxNumSequences }: EncoderBatchLimits): number {
  return Math.ceil(maxNumTokens / ENCODER_TOKENS_PER_BLOCK) + maxNumSequences;
}

/**
 * Whole sequences, packed one after the other; each brings one row of output, or all of its rows. No cache
 * outlives a batch, so blocks are handed out from 0 on each time. The last block of a sequence, whose end is
 * not written to, is zeroed, so that values of an earlier batch are never read.
 *
 *   sequences     5 tokens            40 tokens
 *   blocks        [ 0 ]               [ 1 ][ 2 ]        newBlocks 0, 2
 *   logitRows     its first token, or its last one, padding left aside      (means are taken of whole sequences)
 */
export class EncoderBatch extends PackedArrays {
  readonly tokenTypes: Int32Array;
  readonly #firstPosition: number;
  readonly #takesLast: boolean;
  readonly #padding: number | undefined;
  readonly #rope: RopeTable;

  /** @param rope has a row for each sequence, where frequencies depend on its length */
  constructor(limits: EncoderBatchLimits, { firstPosition, head }: EncoderConfig, rope: RopeTable) {
    const { maxNumTokens, maxNumSequences, maxSeqLen } = limits;
    super(
      {
        tokens: maxNumTokens,
        sequences: maxNumSequences,
        logitRows: encoderRows(limits, head),
        maxBlocksPerSequence: Math.ceil(maxSeqLen / ENCODER_TOKENS_PER_BLOCK),
        // Only the last block of each sequence is announced as new.
        newBlocks: maxNumSequences,
      },
      rope,
    );
    this.tokenTypes = new Int32Array(maxNumTokens);
    this.#firstPosition = firstPosition;
    this.#takesLast = head.pooling === 'last';
    this.#padding = head.padding;
    this.#rope = rope;
  }

  /** Replaces the batch's content. The sequences must be within the limits, each with at least one token. */
  pack(sequences: readonly EncoderSequence[]): void {
    for (const row of this.ropeRows.subarray(0, this.numSequences)) this.#rope.release(row);
    this.clear();
    let block = 0;
    for (const sequence of sequences) block = this.#add(sequence, block);
    this.numNewBlocks = this.numSequences;
  }

  /** @returns the first block after the sequence's blocks */
  #add({ tokenIds, tokenTypes, output }: EncoderSequence, firstBlock: number): number {
    const index = this.numSequences++;
    const begin = this.numTokens;
    const { length } = tokenIds;
    const numBlocks = Math.ceil(length / ENCODER_TOKENS_PER_BLOCK);
    this.tokenIds.set(tokenIds, begin);
    if (tokenTypes === null) this.tokenTypes.fill(0, begin, begin + length);
    else this.tokenTypes.set(tokenTypes, begin);
    for (let i = 0; i < length; i++) {
      this.positions[begin + i] = this.#firstPosition + i;
      this.slots[begin + i] = firstBlock * ENCODER_TOKENS_PER_BLOCK + i;
    }
    for (let i = 0; i < numBlocks; i++) this.blockTables[index * this.maxBlocks + i] = firstBlock + i;
    this.numTokens = begin + length;
    this.queryStart[index + 1] = this.numTokens;
    this.contextLength[index] = length;
    this.ropeRows[index] = this.#rope.assign(length);
    if (output === undefined)
      this.logitRows[this.numLogitRows++] = begin + (this.#takesLast ? this.#lastOf(tokenIds) : 0);
    else for (let i = 0; i < length; i++) this.logitRows[this.numLogitRows++] = begin + i;
    this.newBlocks[index] = firstBlock + numBlocks - 1;
    return firstBlock + numBlocks;
  }

  /** Place of a text's last token that is not padding; 0 where all are. */
  #lastOf(tokenIds: EncoderSequence['tokenIds']): number {
    let last = tokenIds.length - 1;
    while (last > 0 && tokenIds[last] === this.#padding) last--;
    return last;
  }
}
