import { afterAll, expect, it } from 'vitest';
import { GAP_MIN, readGolden, type Smollm2Prompt } from '../../tools/support/goldens.js';
import { argmax, SequenceDriver } from '../../tools/support/sequence-driver.js';
import { engineOptions, nativeEngine, TestEngines } from '../../tools/support/test-engine.js';
import { teacherForced } from '../reference/teacher-forced.js';
import { describeExecutors, EXECUTORS, NATIVE, PLAIN, RANKS } from '../support/executors.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';

/** Greatest difference of a logit; the logits' standard deviation is about 4. */
const LOGIT_DIFFERENCE_MAX = 4e-3;
const PROMPTS = ['plain story', 'emoji'];

const prompts = readGolden<Smollm2Prompt>('smollm2').filter(({ name }) => PROMPTS.includes(name));
const engines = new TestEngines();
afterAll(() => engines.remove());

// The native executor, which rounds activations, is compared with them in test/reference, and ranks with its bits in test/bitwise; the plain
// loops would take minutes.
const others = EXECUTORS.filter((executor) => ![NATIVE, RANKS, PLAIN].includes(executor));

describeWithTestModel('SmolLM2 against Hugging Face transformers in f32', () => {
  describeExecutors((on) => {
    it('has the logits and the greedy tokens of the reference: its four bits are read without loss', async () => {
      const engine = await engines.get(testModelPath!, 'int4');
      const options = { maxNumTokens: 256, maxLogitRows: 64, kvDtype: 'f32', threads: 2 } as const;
      const executor = await on.open(nativeEngine(engine), engineOptions(engine, options));
      const driver = new SequenceDriver(executor, engine.manifest.config);
      for (const prompt of prompts) {
        const { steps, chosen } = teacherForced(driver, prompt);
        for (const [i, { position, tokens, values }] of prompt.logits.entries()) {
          for (const [k, token] of tokens.entries()) {
            const difference = Math.abs(values[k]! - chosen[i]![token]!);
            expect(difference, `${prompt.name}, position ${position}`).toBeLessThan(LOGIT_DIFFERENCE_MAX);
          }
        }
        for (const [step, logits] of steps.entries()) {
          if (prompt.gaps[step]! > GAP_MIN)
            expect(argmax(logits), `${prompt.name}, step ${step}`).toBe(prompt.tokens[step]);
        }
      }
      executor.close();
    });
  }, others);
});
