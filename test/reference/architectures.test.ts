import { afterAll, describe, expect, it } from 'vitest';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { resolveLimits } from '../../engine/options/engine-limits.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { firstWrongToken, klDivergence, readGolden, type TinyPrompt } from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { mean, median } from '../../tools/support/statistics.js';
import {
  BEST_INSTRUCTION_SET,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { instructionSets } from '../support/native-options.js';
import { compareLogits, greatestDifference } from './compare-logits.js';

/** Greatest difference of a logit in f32: the bound of tiny.test.ts. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/**
 * Typical divergences in nats, about twice what they are; unrelated logits diverge by about 9.
 * Of a dense model the mean. Of one with experts the median: where rounding sends a token to
 * another expert its answer is another one, by up to 4 nats, and which tokens these are differs
 * from processor to processor.
 */
const DIVERGENCE_MAX = {
  mistral: { bf16: 1.5e-3, int8: 2e-2, int4: 1 },
  qwen2: { bf16: 1e-3, int8: 3e-2, int4: 1 },
  qwen3: { bf16: 1.2e-3, int8: 1.6e-2, int4: 0.5 },
  phi3: { bf16: 1e-3, int8: 2.6e-2, int4: 1.4 },
  gemma2: { bf16: 1.5e-4, int8: 3e-3, int4: 0.2 },
  gemma3: { bf16: 4e-3, int8: 4.5e-2, int4: 2.3 },
  gpt2: { bf16: 3e-4, int8: 3.5e-3, int4: 0.12 },
  qwen3moe: { bf16: 5e-4, int8: 2e-2, int4: 1.8 },
  mixtral: { bf16: 5e-4, int8: 1.5e-2, int4: 1 },
  'qwen3moe-shares': { bf16: 5e-4, int8: 4e-2, int4: 2.5 },
} as const;
/** Divergence that a cache in int8 adds to DIVERGENCE_MAX. Random weights make no great dimensions, so that turning their keys saves nothing. */
const OF_INT8_CACHE_MAX = 2.5e-3;
const ARCHITECTURES = Object.keys(DIVERGENCE_MAX) as (keyof typeof DIVERGENCE_MAX)[];
/** Whole, and pieces that end inside a block and inside a window. */
const CHUNKS = [256, 13];

const engines = new TestEngines();
afterAll(() => engines.remove());

interface Setting {
  precision?: WeightPrecision;
  kvDtype?: KvDtype;
  instructionSet?: (typeof instructionSets)[number];
  tokensPerBlock?: number;
  maxAttentionWindow?: number;
}

/** With the window that the model's engine would have. */
async function openDriver(architecture: string, { precision = 'f32', ...options }: Setting) {
  const engine = await engines.get(tinyModelPath(architecture), precision);
  const { tokensPerBlock = 16, maxAttentionWindow, ...rest } = options;
  const { manifest } = engine;
  const maxSeqLen = Math.min(manifest.maxSeqLen, 160);
  const kvCacheConfig = maxAttentionWindow === undefined ? {} : { maxAttentionWindow };
  const { window } = resolveLimits({ tokensPerBlock, kvCacheConfig, maxSeqLen }, manifest);
  const executor = openExecutor(engine, {
    instructionSet: BEST_INSTRUCTION_SET,
    tokensPerBlock,
    maxSeqLen,
    ...window?.options,
    ...rest,
  });
  return { executor, driver: new SequenceDriver(executor, manifest.config) };
}

describe.each(ARCHITECTURES)('tiny %s against Hugging Face transformers', (architecture) => {
  const prompts = readGolden<TinyPrompt>(`tiny-${architecture}`);

  it.each(instructionSets)('f32 on %s gives the same logits', async (instructionSet) => {
    const { executor, driver } = await openDriver(architecture, { instructionSet });
    compareLogits(driver, prompts, CHUNKS, (reference, ours, where) => {
      expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
    });
    executor.close();
  });

  it.each([8, 32])('f32 gives the same greedy tokens, %i tokens per block', async (tokensPerBlock) => {
    const { executor, driver } = await openDriver(architecture, { tokensPerBlock });
    for (const prompt of prompts) {
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 37);
      expect(firstWrongToken(tokens, prompt), `prompt of ${prompt.promptIds.length}`).toBeNull();
    }
    executor.close();
  });

  it.each(['bf16', 'int8', 'int4'] as const)('%s stays close, whatever the cache', async (precision) => {
    const { experts } = (await engines.get(tinyModelPath(architecture), precision)).manifest.config;
    for (const kvDtype of ['f32', 'bf16', 'int8'] as const) {
      const { executor, driver } = await openDriver(architecture, { precision, kvDtype });
      const divergences: number[] = [];
      compareLogits(driver, prompts, CHUNKS, (reference, ours) =>
        divergences.push(klDivergence(reference, ours)),
      );
      executor.close();
      const typical = experts === undefined ? mean(divergences) : median(divergences);
      expect(typical, `${kvDtype} cache`).toBeLessThan(
        DIVERGENCE_MAX[architecture][precision] + (kvDtype === 'int8' ? OF_INT8_CACHE_MAX : 0),
      );
    }
  });
});

// The longest prompt of these goldens goes beyond the layers' windows.
describe.each(['qwen2', 'phi3', 'gemma2', 'gemma3', 'mistral', 'mixtral'])(
  'the windows of tiny %s',
  (architecture) => {
    const prompt = readGolden<TinyPrompt>(`tiny-${architecture}`).at(-1)!;

    it('matter: without them the answer is another one', async () => {
      const engine = await engines.get(tinyModelPath(architecture), 'f32');
      const ops = engine.plan.ops.map((op) => {
        if (op.op !== 'attention') return op;
        const { mask: _, ...rest } = op;
        return rest;
      });
      const executor = openExecutor({ ...engine, plan: { ...engine.plan, ops } });
      const driver = new SequenceDriver(executor, engine.manifest.config);
      driver.begin(prompt.ropeFinalLength);
      const { position, values } = prompt.logits.at(-1)!;
      const [ours] = driver.logitsAt(prompt.promptIds, [position], 256);
      expect(greatestDifference(values, ours!)).toBeGreaterThan(0.1);
      executor.close();
    });

    it('lie within a window of the engine: one that is wider changes nothing', async () => {
      const { manifest } = await engines.get(tinyModelPath(architecture), 'f32');
      const maxAttentionWindow = manifest.config.slidingWindow ?? 140;
      const { executor, driver } = await openDriver(architecture, { maxAttentionWindow });
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 256);
      expect(firstWrongToken(tokens, prompt)).toBeNull();
      executor.close();
    });
  },
);
