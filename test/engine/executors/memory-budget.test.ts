import { afterAll, describe, expect, it } from 'vitest';
import type { KvCacheConfig } from '../../../callbacks/gpt-manager-options.js';
import { openEngine } from '../../../engine/building/engine.js';
import { afterLoading, storedWeightBytes } from '../../../engine/executors/memory-budget.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { kvBlocks, resolveLimits } from '../../../engine/options/engine-limits.js';
import { loadExecutor } from '../../../engine/worker/load-executor.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import {
  INSTRUCTION_SETS,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../../tools/support/test-engine.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

describe('the memory budget of the KV cache', () => {
  it('is what is left beside packed weights, stored weights and workspace', () => {
    const memory = { bytes: 10_000, from: 'the test' };
    const fixed = { packedWeights: 4000, storedWeights: 300, workspace: 2000 };
    expect(afterLoading(memory, fixed).bytes).toBe(3700);
    expect(afterLoading({ ...memory, bytes: 6000 }, fixed).bytes).toBe(0);
  });

  it('is named with all its numbers where not even one sequence fits', () => {
    const limits = resolveLimits({ maxSeqLen: 64 }, { maxInputLen: 64, maxSeqLen: 64 });
    const fixed = { packedWeights: 5_000_000, storedWeights: 700_000, workspace: 300_000 };
    const available = afterLoading({ bytes: 6_100_000, from: 'the test' }, fixed);
    expect(() => kvBlocks({}, { limits, bytesPerBlock: 80_000, available })).toThrow(
      /2 KV cache blocks .* but 1 fit into 0\.9 of the 0\.1 MiB .*\(6100000 bytes by the test, less 5000000 of packed weights, 700000 of weights read as stored and 300000 of workspace\)/,
    );
  });

  it('counts of weights.bin what no packed matrix holds: embeddings, norms and biases', async () => {
    const { plan, manifest } = await engines.get(tinyModelPath('bias'), 'bf16');
    const bytes = (kind: RegExp) =>
      manifest.tensors
        .filter(({ name }) => kind.test(name))
        .reduce((sum, { byteLength }) => sum + byteLength, 0);
    const vectors = manifest.tensors.filter(({ rows }) => rows === 1);
    expect(vectors.some(({ name }) => /bias/.test(name))).toBe(true);
    expect(storedWeightBytes(plan, manifest.tensors)).toBe(
      bytes(/embed/) + vectors.reduce((sum, { byteLength }) => sum + byteLength, 0),
    );
    expect(storedWeightBytes(plan, manifest.tensors)).toBeLessThan(manifest.weightsByteLength);
  });

  it.each(INSTRUCTION_SETS)('is measured as the executor will take it (%s)', async (instructionSet) => {
    for (const [variant, precision, threads] of [
      ['gqa', 'f32', 1],
      ['bias', 'bf16', 3],
      ['wide-head', 'bf16', 2],
    ] as const) {
      const engine = await engines.get(tinyModelPath(variant), precision);
      const executor = openExecutor(engine, { instructionSet, threads, maxNumTokens: 70, maxSeqLen: 200 });
      const { plan, weightsFile, directory, manifest } = engine;
      const native = { plan, weightsFile, tensors: manifest.tensors, packedFolder: directory };
      const measured = NativeExecutor.measure(native, executor.options);
      expect(measured).toEqual(executor.memory());
      const { numBlocks: _, ...rest } = executor.options;
      expect(NativeExecutor.measure(native, { ...rest, numBlocks: 1 })).toMatchObject({
        weightBytes: measured.weightBytes,
        workspaceBytes: measured.workspaceBytes,
      });
      executor.close();
    }
  });

  it('is what the pool is sized by: the lesser of the fraction of what is left and maxTokens, with hostCacheSize', async () => {
    const { directory: enginePath, plan } = await engines.get(tinyModelPath('gqa'), 'f32');
    const load = async (kvCacheConfig: KvCacheConfig, bytes: number) => {
      const params = { kvCacheConfig, maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64 };
      const memory = () => ({ bytes, from: 'the test' });
      const request = { enginePath, params, modelType: 'InflightFusedBatching' as const };
      const { executor } = await loadExecutor(request, memory);
      const { numBlocks, numSecondaryBlocks } = executor.options;
      const used = executor.memory();
      executor.close();
      return { blocks: [numBlocks, numSecondaryBlocks], used };
    };
    const perBlock = kvBytesPerBlock(plan.caches, 16, 'f32');
    const { used } = await load({}, 2 ** 40);
    const stored = storedWeightBytes(plan, openEngine(enginePath).manifest.tensors);
    const loaded = used.weightBytes + used.workspaceBytes + stored;
    expect((await load({}, loaded + 40 * perBlock)).blocks).toEqual([36, 0]);
    expect((await load({ freeGpuMemoryFraction: 0.5 }, loaded + 40 * perBlock)).blocks).toEqual([20, 0]);
    expect((await load({ maxTokens: 160 }, loaded + 40 * perBlock)).blocks).toEqual([10, 0]);
    expect((await load({ maxTokens: 1600 }, loaded + 40 * perBlock)).blocks).toEqual([36, 0]);
    const hostCacheSize = 10 * perBlock;
    const swapping = await load({ enableBlockReuse: true, hostCacheSize }, loaded + 40 * perBlock);
    expect(swapping.blocks).toEqual([27, 10]);
    expect(swapping.used.secondaryKvCacheBytes).toBe(hostCacheSize);
    expect(swapping.used.kvCacheBytes).toBeGreaterThanOrEqual(27 * perBlock);
    expect(swapping.used.kvCacheBytes).toBeLessThan(28 * perBlock + plan.attention.numLayers * 4096);
  });

  it('leaves an engine without memory with the numbers', async () => {
    const { directory: enginePath } = await engines.get(tinyModelPath('gqa'), 'f32');
    const params = { kvCacheConfig: { freeGpuMemoryFraction: 1e-12 } };
    const load = loadExecutor({ enginePath, params, modelType: 'InflightFusedBatching' });
    await expect(load).rejects.toThrow(
      /0 fit into 1e-12 .* bytes by .*, less [1-9]\d+ of packed weights, [1-9]\d+ of weights read as stored and [1-9]\d+ of workspace/,
    );
  });
});
