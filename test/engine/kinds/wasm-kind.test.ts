import { afterAll, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { openEngine } from '../../../engine/building/engine.js';
import { loadEncoder } from '../../../engine/encoder/load-encoder.js';
import type { Executor } from '../../../engine/executors/executor.js';
import { wasmKind } from '../../../engine/kinds/wasm-kind.js';
import { loadExecutor, memoryNeeds } from '../../../engine/worker/load-executor.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const engines = new TestEngines();
const opened: Pick<Executor, 'close'>[] = [];
afterAll(() => {
  for (const executor of opened) executor.close();
  engines.remove();
});

const SIZES = { maxSeqLen: 64, tokensPerBlock: 16, maxNumTokens: 64 };

async function load(params: OptionalParams, bytes = 2 ** 40) {
  const { directory: enginePath } = await engines.get(tinyModelPath('gqa'), 'bf16');
  const request = {
    enginePath,
    params: { ...SIZES, executor: 'wasm', ...params } as const,
    modelType: 'InflightFusedBatching' as const,
  };
  const needs = await memoryNeeds(request);
  const loaded = await loadExecutor(request, () => ({ bytes, from: 'the test' }));
  opened.push(loaded.executor);
  if (loaded.draft !== undefined) opened.push(loaded.draft.executor);
  return { ...loaded, needs };
}

describe('the wasm executor', () => {
  it('is opened where it is named, with a cache of f32 whatever the weights are', async () => {
    const { executor, executorFallback } = await load({});
    expect(executor).toMatchObject({ name: 'wasm', options: { kvDtype: 'f32', threads: 1 } });
    expect(executorFallback).toBeNull();
  });

  it('takes what was measured, for weights as for the cache', async () => {
    const { executor, needs } = await load({ kvCacheConfig: { maxTokens: 640 } });
    const memory = executor.memory();
    expect(needs.fixed.packedWeights + needs.fixed.storedWeights).toBe(memory.weightBytes);
    expect(needs.fixed.storedWeights).toBe(0);
    const { directory, plan, weightsFile, manifest } = openEngine(
      (await engines.get(tinyModelPath('gqa'), 'bf16')).directory,
    );
    const loadable = { plan, weightsFile, tensors: manifest.tensors, packedFolder: directory };
    const { kvCache, mostKvCache } = await wasmKind.measure(loadable, executor.options);
    expect(kvCache).toBe(memory.kvCacheBytes);
    expect(mostKvCache!.bytes).toBeLessThan(2 ** 32);
  });

  it('has no larger cache than its heap has room for, of however much memory there is', async () => {
    const { needs } = await load({ maxNumSequences: 2 ** 16, maxBatchSize: 8 });
    expect(needs.mostBytes).toBeLessThanOrEqual(2 ** 32);
  });

  it('runs draft models, with as many blocks', async () => {
    const { directory } = await engines.get(tinyModelPath('bias'), 'f32');
    const { executor, draft } = await load({ draftEnginePath: directory });
    expect(draft!.executor.name).toBe('wasm');
    expect(draft!.executor.options.numBlocks).toBe(executor.options.numBlocks);
  });

  it('runs encoders, whose rows are those of the addon within rounding', async () => {
    const { directory } = await engines.get(tinyModelPath('bert-mean'), 'f32');
    const sequences = [[5, 6, 7, 8, 9], [12]].map((ids) => ({
      tokenIds: Int32Array.from(ids),
      tokenTypes: null,
    }));
    const rows: Float32Array[] = [];
    for (const executor of ['native', 'wasm'] as const) {
      const encoder = await loadEncoder(directory, { executor, maxNumTokens: 64, maxNumSequences: 4 });
      expect([encoder.executor, encoder.executorFallback]).toEqual([executor, null]);
      rows.push(encoder.encode(sequences).slice());
      encoder.close();
    }
    const [native, wasm] = rows as [Float32Array, Float32Array];
    const greatest = native.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    for (const [i, value] of native.entries())
      expect(Math.abs(wasm[i]! - value)).toBeLessThan(1e-4 * greatest);
  });

  it('leaves a model that its heap cannot hold with the numbers', async () => {
    const kvCacheConfig = { enableBlockReuse: true, hostCacheSize: 2 ** 32 };
    await expect(load({ kvCacheConfig })).rejects.toThrow(
      /but 0 fit .*\([0-9]+ bytes by what a heap of WebAssembly holds \(there are .*\), less 4294967296 bytes of hostCacheSize\)/,
    );
  });
});
