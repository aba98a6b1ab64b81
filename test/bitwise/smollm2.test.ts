import { afterAll, expect, it } from 'vitest';
import { paddingRoom } from '../../engine/schemes/padding-room.js';
import { openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { type RunOptions, runAlone, runLoop } from './run-loop.js';
import { expectAllowedLength, randomScenario } from './scenario.js';

const REQUESTS = 20;

const engines = new TestEngines();
afterAll(() => engines.remove());

describeWithTestModel('SmolLM2 on the default path', () => {
  it('answers each of 20 requests together as alone, paused and chunked from reused blocks, and in lockstep', async () => {
    const engine = await engines.get(testModelPath!, 'bf16');
    const { config } = engine.manifest;
    const padding = paddingRoom('V1', { maxSequences: REQUESTS, maxNumTokens: 256, tokensPerBlock: 16 });
    const executor = openExecutor(engine, {
      threads: 2,
      maxSeqLen: 64,
      tokensPerBlock: 16,
      numBlocks: REQUESTS * 4 + padding.blocks,
      maxNumTokens: 256,
      maxNumSequences: REQUESTS + padding.sequences,
      maxLogitRows: REQUESTS,
    });
    const limits = { requests: REQUESTS, maxPrompt: 24, maxNew: 20, arrivalSpan: 4, seed: 5 };
    const arrivals = randomScenario({ vocabSize: config.vocabSize, ...limits });
    const alone = runAlone(executor, config, arrivals);
    for (const { request } of arrivals) {
      expectAllowedLength(request, alone.get(request.requestId)!.tokens.length);
    }
    const small = {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 5,
      maxNumTokens: 64,
      chunked: true,
    } as const;
    const wide = {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: REQUESTS * 4,
      maxNumTokens: 256,
      chunked: false,
    } as const;
    // Schedules do not depend on the model: tiny ones have all of them. This one has matrices of a real size.
    const runs: RunOptions[] = [wide, { ...small, reuse: true }, { ...wide, modelType: 'V1' }];
    for (const options of runs) {
      const result = runLoop(executor, config, arrivals, options);
      expect(result.answers).toStrictEqual(alone);
      expect(result.replayMismatches).toBe(0);
      if (options.numBlocks === small.numBlocks) expect(result.pauses).toBeGreaterThan(2);
      else expect(result.pauses).toBe(0);
      if (options === wide) expect(result.greatestBatch).toBeGreaterThan(REQUESTS / 2);
      if (options.modelType === 'V1') expect(result.emptyGenerationSlots).toBeGreaterThan(20);
      if (options.reuse) expect(result.reusedTokens).toBeGreaterThan(0);
    }
    executor.close();
  });
});
