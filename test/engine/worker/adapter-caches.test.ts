import { afterAll, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { openEngine } from '../../../engine/building/engine.js';
import { nativeKind } from '../../../engine/kinds/native-kind.js';
import { pageSizes } from '../../../engine/peft/page-sizes.js';
import { loadExecutor, memoryNeeds } from '../../../engine/worker/load-executor.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

const PARAMS: OptionalParams = { maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64 };
const PEFT = { optimalAdapterSize: 2, maxAdapterSize: 4 };

const request = async (params: OptionalParams) => ({
  enginePath: (await engines.get(tinyModelPath('gqa'), 'f32')).directory,
  params: { ...PARAMS, ...params },
  modelType: 'InflightFusedBatching' as const,
});

async function sizes() {
  const { plan, directory } = await engines.get(tinyModelPath('gqa'), 'f32');
  const { bytesPerPage } = pageSizes(openEngine(directory).manifest.config, PEFT, nativeKind.rankUnit);
  return { bytesPerPage, bytesPerBlock: kvBytesPerBlock(plan.caches, 16, 'f32') };
}

describe('an engine with room for adapters', () => {
  it('leaves it beside the KV cache: what the host may take first, then a share of what is left', async () => {
    const { bytesPerPage, bytesPerBlock } = await sizes();
    const hostCacheSize = 5 * bytesPerPage;
    // Nine tenths of 150 blocks are the KV cache; half of the 15 left are two pages.
    const availableMemory = { bytes: hostCacheSize + 150 * bytesPerBlock, from: 'the test' };
    const deviceCachePercent = 0.5;
    const peftCacheManagerConfig = { ...PEFT, hostCacheSize, deviceCachePercent };
    const { executor, adapters } = await loadExecutor(
      await request({ availableMemory, peftCacheManagerConfig, maxNumSequences: 192 }),
    );
    executor.close();
    const device = Math.floor((0.5 * 15 * bytesPerBlock) / bytesPerPage);
    expect(device).toBe(2);
    expect(executor.options.numBlocks).toBe(135);
    expect(adapters!.pages).toEqual({ host: 5, device });
    expect(executor.options).toMatchObject({ maxAdapters: device, maxLoraRank: 4 });
  });

  it('has what rows say, and none where it was not asked for', async () => {
    const { bytesPerPage } = await sizes();
    const asked = async (peftCacheManagerConfig: OptionalParams['peftCacheManagerConfig']) => {
      const kvCacheConfig = { maxTokens: 64 };
      const params = { kvCacheConfig, ...(peftCacheManagerConfig ? { peftCacheManagerConfig } : {}) };
      const { executor, adapters } = await loadExecutor(await request(params));
      executor.close();
      return { options: executor.options, adapters };
    };
    const { rowsPerPage } = (await asked(PEFT)).adapters!.sizes;
    const rows = { numHostModuleLayer: 7 * rowsPerPage, numDeviceModuleLayer: 3 * rowsPerPage };
    const given = await asked({ ...PEFT, ...rows });
    expect(given.adapters!.pages).toEqual({ host: 7, device: 3 });
    expect(given.options.maxAdapters).toBe(3);
    const none = await asked(undefined);
    expect(none.adapters).toBeUndefined();
    expect(none.options.maxAdapters ?? 0).toBe(0);
    const needs = async (params: OptionalParams) => (await memoryNeeds(await request(params))).mostBytes;
    const kvCacheConfig = { maxTokens: 64 };
    const more = await needs({
      kvCacheConfig,
      peftCacheManagerConfig: { ...PEFT, hostCacheSize: 3 * bytesPerPage },
    });
    expect(more - (await needs({ kvCacheConfig }))).toBe(3 * bytesPerPage);
  });

  it('does not start without memory for a page', async () => {
    const { bytesPerBlock } = await sizes();
    const peftCacheManagerConfig = { ...PEFT, hostCacheSize: 2 ** 16, deviceCachePercent: 0.0001 };
    const availableMemory = { bytes: 2 ** 16 + 40 * bytesPerBlock, from: 'the test' };
    await expect(loadExecutor(await request({ availableMemory, peftCacheManagerConfig }))).rejects.toThrow(
      /peftCacheManagerConfig\.deviceCachePercent is 0\.0001 of \d+ bytes that the model and the KV cache leave; a page takes/,
    );
  });
});
