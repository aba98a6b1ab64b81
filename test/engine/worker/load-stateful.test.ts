import { afterAll, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { requireSupport } from '../../../engine/kinds/choose-executor.js';
import { tensorflowKind } from '../../../engine/kinds/tensorflow-kind.js';
import { loadExecutor, memoryNeeds } from '../../../engine/worker/load-executor.js';
import { stateBytesPerSlot } from '../../../kvcache/kv-cache-size.js';
import { stateInputBytes } from '../../../network/state-inputs.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeModelPath } from '../../support/made-models.js';

const engines = new TestEngines();
const folder = temporaryFolder('skein-stateful');
afterAll(() => engines.remove());

const SIZES = { maxSeqLen: 64, threads: 1, tokensPerBlock: 16, maxNumTokens: 64, maxNumSequences: 6 };

type Variant = 'qwen3.5' | 'mamba2' | 'gqa';

async function engineOf(variant: Variant) {
  return engines.get(variant === 'gqa' ? tinyModelPath(variant) : madeModelPath(folder, variant), 'f32');
}

async function requestOf(params: OptionalParams, variant: Variant = 'qwen3.5') {
  const { directory: enginePath } = await engineOf(variant);
  return { enginePath, params: { ...SIZES, ...params }, modelType: 'InflightFusedBatching' as const };
}

const load = async (params: OptionalParams, bytes = 2 ** 40, variant: Variant = 'qwen3.5') =>
  loadExecutor(await requestOf(params, variant), () => ({ bytes, from: 'the test' }));

describe('a model whose layers keep states', () => {
  it('has a slot for each sequence, and with reuse of blocks snapshots', async () => {
    for (const [enableBlockReuse, numSnapshots] of [
      [false, 0],
      [true, 6 * 4],
    ] as const) {
      const { executor, states, limits } = await load({ kvCacheConfig: { enableBlockReuse } });
      expect(states).toEqual({ numSlots: 6, numSnapshots, draftRows: 8 });
      expect(executor.options).toMatchObject({
        numStateSlots: 6 + numSnapshots,
        numDraftSlots: 6,
        stateDraftRows: 8,
      });
      expect(limits).toMatchObject({ maxDraftRows: 32, maxDraftLen: 8 });
      executor.close();
    }
  });

  it('takes of the memory for blocks what its states need', async () => {
    const { plan } = await engineOf('qwen3.5');
    const { fixed } = await memoryNeeds(await requestOf({}));
    const fixedBytes = fixed.packedWeights + fixed.storedWeights + fixed.workspace;
    const slot = stateBytesPerSlot(plan.states!) + 8 * stateInputBytes(plan);
    // 0.3 of the memory's share hold three slots.
    const { executor, states } = await load(
      { kvCacheConfig: { freeGpuMemoryFraction: 1 } },
      fixedBytes + 11 * slot,
    );
    expect(states).toEqual({ numSlots: 3, numSnapshots: 0, draftRows: 8 });
    executor.close();
    await expect(load({}, fixedBytes + slot)).rejects.toThrow(
      /^The states of 1 sequence take 0\.0 MiB, but 0\.3 of the 0\.0 MiB of memory available hold 0\. Give it more memory\.$/,
    );
  });

  it('has drafts of its own, and is a draft model, with slots of its own', async () => {
    const { directory } = await engineOf('qwen3.5');
    const one = await load({ speculate: 'ngram', maxDraftLen: 5 });
    expect(one.executor.options).toMatchObject({ numDraftSlots: 6, stateDraftRows: 5 });
    one.executor.close();
    const fixed = async (params: OptionalParams) =>
      (await memoryNeeds(await requestOf(params))).fixed.workspace;
    const two = await load({ draftEnginePath: directory });
    expect(two.draft!.executor.options).toMatchObject({
      numStateSlots: 6,
      numDraftSlots: 6,
      stateDraftRows: 8,
    });
    two.draft!.executor.close();
    two.executor.close();
    const { plan } = await engineOf('qwen3.5');
    const states = 6 * (stateBytesPerSlot(plan.states!) + 8 * stateInputBytes(plan));
    const besides = (await fixed({ draftEnginePath: directory })) - (await fixed({}));
    expect(besides).toBeGreaterThan(states);
  });

  it('is refused by the executor of TensorFlow', async () => {
    const { plan } = await engineOf('qwen3.5');
    // Loading asks first whether TensorFlow is installed.
    expect(() => requireSupport(tensorflowKind, plan)).toThrow(
      'The tensorflow executor keeps no states of sequences, which layers of this model need; the native and the wasm executor run such models.',
    );
  });

  it.each(['native', 'wasm'] as const)('loads on %s where no layer has attention', async (executor) => {
    const params = { executor, kvCacheConfig: { enableBlockReuse: true } };
    const loaded = await load(params, 2 ** 40, 'mamba2');
    expect(loaded.states).toEqual({ numSlots: 6, numSnapshots: 6 * 4, draftRows: 8 });
    expect(loaded.executor.blockAccess).toMatchObject({ bytesPerBlock: 0, states: expect.anything() });
    loaded.executor.close();
  });

  it('finds room for its states in the heap of the wasm executor', async () => {
    const { executor, states } = await load({ executor: 'wasm', kvCacheConfig: { enableBlockReuse: true } });
    expect(executor.name).toBe('wasm');
    expect(states).toEqual({ numSlots: 6, numSnapshots: 6 * 4, draftRows: 8 });
    executor.close();
    // As many sequences as no heap could hold.
    const params = {
      executor: 'wasm',
      maxNumSequences: 2 ** 19,
      maxNumTokens: 2 ** 19,
      maxBatchSize: 64,
    } as const;
    const { fixed, mostBytes } = await memoryNeeds(
      await requestOf({ ...params, kvCacheConfig: { enableBlockReuse: true } }),
    );
    const pools = 0.9 * mostBytes;
    expect(pools + fixed.workspace).toBeLessThan(2 ** 32);
    expect(pools + fixed.workspace).toBeGreaterThan(0.9 * 2 ** 32);
  });
});

describe('a model of which no layer attends', () => {
  it('has blocks that take no memory, as many as its sequences may need', async () => {
    const kvCacheConfig = { enableBlockReuse: true, hostCacheSize: 2 ** 20 };
    const { executor, states } = await load({ kvCacheConfig }, 2 ** 30, 'mamba2');
    expect(executor.options.numBlocks).toBe(6 * 4);
    expect(executor.options.numSecondaryBlocks).toBe(0);
    expect(executor.blockAccess).toMatchObject({ bytesPerBlock: 0, states: expect.anything() });
    expect(states).toEqual({ numSlots: 6, numSnapshots: 6 * 4, draftRows: 8 });
    const { plan } = await engineOf('mamba2');
    const drafts = 6 * 8 * stateInputBytes(plan);
    expect(executor.memory().kvCacheBytes).toBe(30 * stateBytesPerSlot(plan.states!) + drafts);
    executor.close();
  });

  it('needs memory for its states alone', async () => {
    const { fixed, mostBytes } = await memoryNeeds(await requestOf({}, 'mamba2'));
    const { plan } = await engineOf('mamba2');
    const slot = stateBytesPerSlot(plan.states!) + 8 * stateInputBytes(plan);
    expect(mostBytes).toBe(Math.ceil((6 * slot) / 0.9));
    const fixedBytes = fixed.packedWeights + fixed.storedWeights + fixed.workspace;
    await expect(load({}, fixedBytes, 'mamba2')).rejects.toThrow(/^The states of 1 sequence take 0\.0 MiB/);
  });
});
