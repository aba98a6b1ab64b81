import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { GptManager, ParameterError, Skein, SkeinError } from 'skein';
import { afterAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const folder = temporaryFolder('skein-no-panels');
const model = new URL('../fixtures/tiny-qwen2-gguf/tiny-qwen2.gguf', import.meta.url).pathname;
const sizes = { threads: 2, kvCacheTokens: 1024 } as const;
const opened: Skein[] = [];
afterAll(async () => {
  for (const skein of opened) await skein.close();
});

async function load(options: Partial<Parameters<typeof Skein.load>[0]>): Promise<Skein> {
  const skein = await Skein.load({ model, ...sizes, ...options });
  opened.push(skein);
  return skein;
}

describe('a GGUF without panels', () => {
  it('has the answers of its panels, chats and guides, and leaves no folder behind', async () => {
    const cacheDir = join(folder, 'never-made');
    const stored = await load({ panels: false, cacheDir });
    const packed = await load({
      weights: 'stored',
      outputWeights: 'stored',
      cacheDir: join(folder, 'cache'),
    });
    const requests = [
      { prompt: 'Hello there', maxTokens: 12, seed: 1, logProbs: 1 },
      { messages: [{ role: 'user' as const, content: 'Hi' }], maxTokens: 12, seed: 3, temperature: 0.9 },
      { prompt: 'x', maxTokens: 12, seed: 2, guided: { regex: '[a-c]{3,5}' } },
    ];
    for (const request of requests)
      expect(await stored.complete(request)).toEqual(await packed.complete(request));
    const [alone] = [await stored.complete(requests[1]!)];
    const crowd = await Promise.all(Array.from({ length: 9 }, () => stored.complete(requests[1]!)));
    for (const answer of crowd) expect(answer).toEqual(alone);
    expect(stored.info).toMatchObject({ enginePath: model, executor: 'native', weights: 'stored' });
    expect(existsSync(cacheDir)).toBe(false);
  });

  it.each([
    ['another executor', { executor: 'wasm' }, 'panels', /wasm executor converts its weights/],
    ['other weights', { weights: 'int8' }, 'weights', /weights is int8, but without panels/],
    ['another output layer', { outputWeights: 'bf16' }, 'outputWeights', /outputWeights is bf16/],
    ['several ranks', { tensorParallelSize: 2 }, 'panels', /several ranks need panels of their own/],
    [
      'an executor of a module',
      { executorModule: 'file:///none.js' },
      'panels',
      /executorModule names another/,
    ],
  ] as const)('is refused with %s', async (_, options, field, message) => {
    const error = await load({ panels: false, ...options }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ParameterError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  it('is refused where it is no GGUF, or an encoder', async () => {
    for (const [other, reason] of [
      [tinyModelPath('gqa'), /only a GGUF is computed with as it lies/],
      [tinyModelPath('bert-mean'), /only a GGUF is computed with as it lies/],
    ] as const) {
      const error = await load({ model: other, panels: false }).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(SkeinError);
      expect((error as Error).message).toMatch(reason);
    }
  });

  it('is what a GptManager computes with, whose path is the file', async () => {
    mkdirSync(join(folder, 'manager'));
    const manager = new GptManager({
      enginePath: model,
      modelType: 'InflightFusedBatching',
      maxBeamWidth: 1,
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      optionalParams: { panels: false, kvCacheConfig: { maxTokens: 512 } },
      getInferenceRequests: () => [],
      sendResponse: () => {},
    });
    const info = await manager.ready;
    expect(info).toMatchObject({ executor: 'native', memory: { weightBytes: expect.any(Number) } });
    await manager.shutdown();
  });
});
