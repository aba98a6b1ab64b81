import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { resolveLimits } from '../../engine/options/engine-limits.js';
import { firstWrongToken } from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { engineOptions, nativeEngine, TestEngines } from '../../tools/support/test-engine.js';
import { compareLogits, greatestDifference } from '../reference/compare-logits.js';
import { describeExecutors, EXECUTORS, NATIVE } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_MODELS, writeMadeModel } from '../support/made-models.js';

// Of what test/reference/families.test.ts compares on the native executor, networks unlike those of the other
// goldens: layers without RoPE, norms over all heads, of heads by themselves and of turned heads, frequencies
// of 0, several tables of RoPE, MLPs without a gate, LayerNorm with biases and without; mixtures with biases
// of the choice, groups, MLPs for all tokens and layers without experts; scores without values, with experts
// that are clamped; and two experts chosen one after the other, together with biases of everything.
const NAMES = [
  'smollm3',
  'olmo2',
  'olmo3',
  'exaone4',
  'glm4',
  'granite',
  'cohere2',
  'arcee',
  'nemotron-bias',
  'command-r-plus',
  'hunyuan',
  'apertus',
  'openelm',
  'qwen2-moe',
  'olmoe',
  'glm4.5',
  'gpt-oss-clamped',
  'phi-moe',
  'phi-moe-near',
  'gemma4',
  'gemma4-mixture',
];
// Layers with states: convolutions, delta rules, scans, and experts next to them.
const STATEFUL = [
  ...['lfm2', 'lfm2-bias', 'lfm2-moe', 'qwen3.5', 'qwen3.5-moe', 'qwen3-next'],
  ...['mamba2', 'falcon-h1', 'falcon-h1-norm', 'nemotron-h', 'nemotron-h-moe', 'granite4-h-moe'],
];
const namedIn = (names: readonly string[]) => MADE_MODELS.filter(({ name }) => names.includes(name));
/** The norms over all heads are no sum that ranks can share. */
const NOT_IN_RANKS = ['olmo2', 'olmo3'];
/** Layers differ in their heads, which the native executor and the one of wasm run. */
const UNEVEN = ['openelm', 'gemma4', 'gemma4-mixture'];
const OTHERS = EXECUTORS.filter((executor) => executor !== NATIVE);
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;

const folder = temporaryFolder('skein-conform');
const engines = new TestEngines();
afterAll(() => engines.remove());

describeExecutors((on) => {
  const names = [...NAMES, ...(on.runsStates ? STATEFUL : [])];
  describe.each(namedIn(names))('$name', (made) => {
    const open = async () => {
      const engine = await engines.get(writeMadeModel(join(folder, made.name), made), 'f32');
      const { window } = resolveLimits({ tokensPerBlock: 16 }, engine.manifest);
      const options = { tokensPerBlock: 16, kvDtype: 'f32', ...window?.options } as const;
      const executor = await on.open(nativeEngine(engine), engineOptions(engine, options));
      return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
    };

    if (on.name === 'ranks' && NOT_IN_RANKS.includes(made.name)) {
      it('is refused by a sentence', async () => {
        await expect(open()).rejects.toThrow(/norms queries or keys of all heads together/);
      });
      return;
    }

    if (on.name !== 'wasm' && UNEVEN.includes(made.name)) {
      it('is refused by a sentence', async () => {
        await expect(open()).rejects.toThrow(
          /the same in all layers|same heads in all layers|have different heads|what other layers keep/,
        );
      });
      return;
    }

    it('has the logits of Hugging Face transformers, and the same greedy tokens', async () => {
      const { executor, driver } = await open();
      compareLogits(driver, made.prompts, [13], (reference, ours, where) => {
        expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      });
      const prompt = made.prompts.at(-1)!;
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 256);
      expect(firstWrongToken(tokens, prompt)).toBeNull();
      executor.close();
    });
  });
}, OTHERS);
