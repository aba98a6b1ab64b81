import { afterAll, expect, it } from 'vitest';
import { openExecutor, TestEngines } from '../support/test-engine.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { runAlone, runLoop } from './run-loop.js';
import { expectAllowedLength, randomScenario } from './scenario.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

describeWithTestModel('SmolLM2 on the default path', () => {
  it('answers each of 32 requests together as alone, paused and chunked', async () => {
    const engine = await engines.get(testModelPath!, 'bf16');
    const { config } = engine.manifest;
    const executor = openExecutor(engine, {
      threads: 2,
      maxSeqLen: 64,
      tokensPerBlock: 16,
      numBlocks: 32 * 4,
      maxNumTokens: 256,
      maxNumSequences: 32,
      maxLogitRows: 32,
    });
    const limits = { requests: 32, maxPrompt: 24, maxNew: 30, arrivalSpan: 10, seed: 5 };
    const arrivals = randomScenario({ vocabSize: config.vocabSize, ...limits });
    const alone = runAlone(executor, config, arrivals);
    for (const { request } of arrivals) {
      expectAllowedLength(request, alone.get(request.requestId)!.tokens.length);
    }
    const small = {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 16,
      maxNumTokens: 64,
      chunked: true,
    } as const;
    const wide = {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: 32 * 4,
      maxNumTokens: 256,
      chunked: false,
    } as const;
    for (const options of [small, wide, { ...small, reuse: true }, { ...wide, overlap: true }]) {
      const result = runLoop(executor, config, arrivals, options);
      expect(result.answers).toStrictEqual(alone);
      expect(result.replayMismatches).toBe(0);
      if (options.numBlocks === small.numBlocks) expect(result.pauses).toBeGreaterThan(2);
      else expect([result.pauses, result.greatestBatch > ('overlap' in options ? 8 : 16)]).toEqual([0, true]);
      if ('overlap' in options) expect(result.overlapped).toBeGreaterThan(10);
      if ('reuse' in options) expect(result.reusedTokens).toBeGreaterThan(0);
    }
    executor.close();
  });
});
