import { afterAll, describe, expect, it } from 'vitest';
import { kvBlocks, resolveLimits } from '../../engine/engine-limits.js';
import { loadExecutor } from '../../engine/load-executor.js';
import { afterLoading, storedWeightBytes } from '../../engine/memory-budget.js';
import { NativeExecutor } from '../../engine/native/native-executor.js';
import { INSTRUCTION_SETS, openExecutor, TestEngines, tinyModelPath } from '../support/test-engine.js';

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

  it('leaves an engine without memory with the numbers', async () => {
    const { directory: enginePath } = await engines.get(tinyModelPath('gqa'), 'f32');
    const params = { kvCacheConfig: { freeGpuMemoryFraction: 1e-12 } };
    expect(() => loadExecutor({ enginePath, params, modelType: 'InflightFusedBatching' })).toThrow(
      /0 fit into 1e-12 .* bytes by .*, less [1-9]\d+ of packed weights, [1-9]\d+ of weights read as stored and [1-9]\d+ of workspace/,
    );
  });
});
