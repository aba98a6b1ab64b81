import { afterAll, afterEach, expect, test } from 'vitest';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../engine/sharding/rank-shape.js';
import { ropeFrequencies } from '../../network/rope.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { engineOptions, nativeEngine, TestEngines } from '../../tools/support/test-engine.js';
import { TestGroups } from '../support/rank-groups.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';

const TOKENS = 6;
const PROMPT = [504, 3575, 282, 4649, 314];
const BLOCKS = [0, 1];

const engines = new TestEngines();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => engines.remove());

/** Logits of the prompt and of each greedy token. */
function logitsOf(
  executor: Pick<NativeExecutor, 'forward'>,
  inverseFrequencies: Float32Array,
  tokensPerBlock: number,
) {
  const tokens = [...PROMPT];
  const all: Float32Array[] = [];
  for (let cached = 0; all.length < TOKENS; cached = tokens.length - 1) {
    const newBlocks = cached === 0 ? BLOCKS : [];
    const sequence = { tokens, cached, blocks: BLOCKS };
    const logits = executor
      .forward(makeStepBatch([sequence], { tokensPerBlock, inverseFrequencies, newBlocks }))
      .slice();
    all.push(logits);
    tokens.push(logits.indexOf(logits.reduce((a, b) => Math.max(a, b))));
  }
  // Bytes are compared faster than numbers, and a NaN is no excuse.
  return { tokens, logits: Buffer.concat(all.map(({ buffer }) => Buffer.from(buffer))).toString('base64') };
}

describeWithTestModel('SmolLM2 on ranks has the logits and greedy tokens of one process', () => {
  // Each shape in one format: small models have all of both in ranks.test.ts.
  test.each<[WeightPrecision, Partial<GroupShape>]>([
    ['bf16', { tensorParallelSize: 2 }],
    ['int8', { tensorParallelSize: 4 }],
    ['int4', { pipelineParallelSize: 2 }],
  ])('%s', async (precision, shape) => {
    const built = await engines.get(testModelPath!, precision);
    const { inverseFrequencies } = ropeFrequencies(built.manifest.config.rope);
    const options = engineOptions(built, { threads: 1, maxSeqLen: 64, numBlocks: 2 });
    const alone = new NativeExecutor(nativeEngine(built), options);
    const expected = logitsOf(alone, inverseFrequencies, options.tokensPerBlock);
    alone.close();
    expect(new Set(expected.tokens).size).toBeGreaterThan(PROMPT.length);
    const { executor } = await groups.open(nativeEngine(built), shape, options);
    const found = logitsOf(executor, inverseFrequencies, options.tokensPerBlock);
    expect(found.tokens).toEqual(expected.tokens);
    expect(found.logits === expected.logits).toBe(true);
  });
});
