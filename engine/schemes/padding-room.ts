import type { ModelType } from '../../callbacks/gpt-manager-options.js';

/** Room that padding rows take of an executor, in addition to those of requests. */
export interface PaddingRoom {
  /** Number of padding sequences in one step. */
  sequences: number;
  /** Number of KV blocks after those of the pool. */
  blocks: number;
}

/**
 * Room for padding, which only V1 uses. Every padding row has a slot of its own within a step, so that no two threads
 * write the same one: a context's padding of n rows touches at most floor(n / tokensPerBlock) + 2 blocks, all of them
 * together are fewer rows than maxNumTokens, and an empty generation slot touches one block.
 */
export function paddingRoom(
  modelType: ModelType,
  sizes: { maxSequences: number; maxNumTokens: number; tokensPerBlock: number },
): PaddingRoom {
  if (modelType !== 'V1') return { sequences: 0, blocks: 0 };
  const { maxSequences, maxNumTokens, tokensPerBlock } = sizes;
  return {
    sequences: maxSequences,
    blocks: Math.floor(maxNumTokens / tokensPerBlock) + 2 * maxSequences,
  };
}
