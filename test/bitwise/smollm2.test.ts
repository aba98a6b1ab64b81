import { afterAll, expect, it } from 'vitest';
import { openExecutor, TestEngines } from '../support/test-engine.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { runAlone, runLoop } from './run-loop.js';
import { randomScenario } from './scenario.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

describeWithTestModel('SmolLM2 on the default path', () => {
  it('answers each of 8 requests together as alone, paused and chunked', async () => {
    const engine = await engines.get(testModelPath!, 'bf16');
    const { config } = engine.manifest;
    const executor = openExecutor(engine, {
      threads: 2,
      maxSeqLen: 128,
      tokensPerBlock: 16,
      numBlocks: 64,
      maxNumTokens: 256,
      maxNumSequences: 8,
      maxLogitRows: 8,
    });
    const limits = { requests: 8, maxPrompt: 40, maxNew: 60, arrivalSpan: 10, seed: 5 };
    const arrivals = randomScenario({ vocabSize: config.vocabSize, ...limits });
    const alone = runAlone(executor, config, arrivals);
    const small = {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 12,
      maxNumTokens: 96,
      chunked: true,
    } as const;
    const wide = {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: 64,
      maxNumTokens: 256,
      chunked: false,
    } as const;
    for (const options of [small, wide, { ...small, reuse: true }]) {
      const { answers, pauses, replayMismatches, reusedTokens } = runLoop(
        executor,
        config,
        arrivals,
        options,
      );
      expect(answers).toStrictEqual(alone);
      expect(replayMismatches).toBe(0);
      if (options.numBlocks === small.numBlocks) expect(pauses).toBeGreaterThan(2);
      if ('reuse' in options) expect(reusedTokens).toBeGreaterThan(0);
    }
    executor.close();
  });
});
