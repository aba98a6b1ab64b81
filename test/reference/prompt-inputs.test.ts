import { afterAll, describe, expect, it } from 'vitest';
import { firstWrongToken, readGolden } from '../../tools/support/goldens.js';
import {
  BEST_INSTRUCTION_SET,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { type RunOptions, runLoop } from '../bitwise/run-loop.js';
import { instructionSets } from '../support/native-options.js';
import { type OwnPrompt, requestOf } from './own-prompts.js';

const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
const engines = new TestEngines();
afterAll(() => engines.remove());

describe.each(readGolden<OwnPrompt>('prompt-inputs'))(
  '$name, against Hugging Face transformers',
  (prompt) => {
    async function answer(instructionSet: string, options: Partial<RunOptions> = {}) {
      const engine = await engines.get(tinyModelPath('gqa'), 'f32');
      const executor = openExecutor(engine, { instructionSet: instructionSet as never, tokensPerBlock: 16 });
      const { numBlocks, maxNumTokens } = executor.options;
      const run = runLoop(executor, engine.manifest.config, [{ iteration: 0, request: requestOf(prompt) }], {
        ...{ schedulerPolicy: 'GUARANTEED_NO_EVICT', numBlocks, maxNumTokens, chunked: false },
        ...options,
      });
      executor.close();
      return run.answers.get(1n)!;
    }

    it.each(instructionSets)('f32 on %s gives the same logits and the same greedy tokens', async (isa) => {
      const { contextLogits, tokens, error } = await answer(isa);
      expect(error).toBe('');
      const vocabSize = contextLogits!.length / prompt.promptIds.length;
      for (const { position, values } of prompt.logits) {
        const ours = contextLogits!.subarray(position * vocabSize, (position + 1) * vocabSize);
        const difference = values.reduce((max, value, i) => Math.max(max, Math.abs(value - ours[i]!)), 0);
        expect(difference, `position ${position}`).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      }
      expect(firstWrongToken(tokens, prompt)).toBeNull();
    });

    it('chunks of 16 give the same bits', async () => {
      const isa = BEST_INSTRUCTION_SET;
      expect(await answer(isa, { chunked: true, maxNumTokens: 16 })).toEqual(await answer(isa));
    });
  },
);
