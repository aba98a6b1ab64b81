import { describe, expect, it } from 'vitest';
import { FakeExecutor } from '../../../engine/executors/fake/fake-executor.js';
import { runCopiedContexts } from '../../../tools/compare/copied-contexts.js';

/** Its tokens are hashes of all that a sequence reads through its blocks, and it refuses a slot that is written twice. */
function executorFor(sequences: number, tokensPerBlock = 4): FakeExecutor {
  return new FakeExecutor({
    threads: 1,
    maxNumTokens: 8,
    maxNumSequences: sequences,
    maxLogitRows: sequences,
    maxSeqLen: 64,
    numBlocks: sequences * 8,
    tokensPerBlock,
    kvDtype: 'f32',
    vocabSize: 1000,
  });
}

describe('runCopiedContexts', () => {
  it.each([
    { name: 'a last block that is partly filled', promptTokens: 18 },
    { name: 'blocks that are full', promptTokens: 16 },
  ])('gives every sequence the context that one alone computes: $name', ({ promptTokens }) => {
    const shape = { promptTokens, generate: 6 };
    const frequencies = new Float32Array(2);
    const alone = runCopiedContexts(executorFor(1), frequencies, { ...shape, sequences: 1 });
    for (const shared of [false, true]) {
      const together = runCopiedContexts(executorFor(3), frequencies, { ...shape, sequences: 3, shared });
      expect([...together.tokens]).toEqual(Array(3).fill(alone.tokens[0]));
      expect(together.generationPerSecond).toBeGreaterThan(0);
    }
    const shorter = { promptTokens: promptTokens - 1, generate: 7, sequences: 1 };
    expect(runCopiedContexts(executorFor(1), frequencies, shorter).tokens[0]).toBe(alone.tokens[0]);
  });
});
