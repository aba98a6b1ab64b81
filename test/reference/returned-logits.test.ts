import { afterAll, describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { ModelConfig } from '../../models/model-config.js';
import { GAP_MIN, logSumExp, readGolden, type TinyPrompt } from '../../tools/support/goldens.js';
import { bool, makeRequest, u64 } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { runLoop } from '../bitwise/run-loop.js';
import { instructionSets } from '../support/native-options.js';
import { greatestDifference } from './compare-logits.js';

/** Greatest difference of a logit in f32, and of a log-prob. */
const DIFFERENCE_MAX = 2e-4;
/** Fewer rows of logits at once than prompt tokens, and chunks that end inside a block. */
const EXECUTOR = { maxLogitRows: 5, maxNumSequences: 5, numBlocks: 40 };

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Asks for everything; as long as the golden's length-dependent frequencies were computed for. */
function requestOf({ promptIds, ropeFinalLength }: TinyPrompt, id: bigint): InferenceRequest {
  const inputs = {
    return_context_logits: bool(true),
    return_generation_logits: bool(true),
    return_context_log_probs: bool(true),
    random_seed: u64(1n),
  };
  return makeRequest(id, promptIds, ropeFinalLength - promptIds.length, inputs);
}

function compare(executor: NativeExecutor, config: ModelConfig, prompts: TinyPrompt[]): number {
  const { vocabSize } = executor;
  const arrivals = prompts.map((prompt, i) => ({ iteration: i, request: requestOf(prompt, BigInt(i)) }));
  const { answers } = runLoop(executor, config, arrivals, {
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    numBlocks: EXECUTOR.numBlocks,
    maxNumTokens: 70,
    chunked: true,
  });
  let rows = 0;
  for (const [i, { promptIds, tokens, gaps, logits }] of prompts.entries()) {
    const answer = answers.get(BigInt(i))!;
    expect(answer.error).toBe('');
    expect(answer.contextLogits!.length).toBe(promptIds.length * vocabSize);
    for (const { position, values } of logits) {
      const ours = answer.contextLogits!.subarray(position * vocabSize, (position + 1) * vocabSize);
      const where = `position ${position} of ${promptIds.length}`;
      expect(greatestDifference(values, ours), where).toBeLessThan(DIFFERENCE_MAX);
      rows++;
      const next = promptIds[position + 1];
      if (next === undefined) continue;
      const expected = values[next]! - logSumExp(values);
      expect(Math.abs(answer.contextLogProbs![position]! - expected), where).toBeLessThan(DIFFERENCE_MAX);
    }
    for (const [step, token] of tokens.entries()) {
      const ours = answer.generationLogits.slice(step * vocabSize, (step + 1) * vocabSize);
      if (gaps[step]! <= GAP_MIN) break;
      expect(ours.indexOf(Math.max(...ours)), `step ${step} after ${promptIds.length}`).toBe(token);
    }
  }
  return rows;
}

describe.each(['gqa', 'bias', 'dynamic', 'longrope'])('returned logits of tiny %s', (variant) => {
  const prompts = readGolden<TinyPrompt>(`tiny-${variant}`);

  it.each(instructionSets)('on %s are those of Hugging Face transformers', async (instructionSet) => {
    const engine = await engines.get(tinyModelPath(variant), 'f32');
    const executor = openExecutor(engine, { ...EXECUTOR, instructionSet });
    const rows = compare(executor, engine.manifest.config, prompts);
    executor.close();
    expect(rows).toBeGreaterThan(20);
  });
});
