import type { PeftCacheConfig } from '../../../callbacks/gpt-manager-options.js';
import { RopeTable } from '../../batch/rope-table.js';
import { kvBlocks, resolveLimits, secondaryBlocks } from '../../options/engine-limits.js';
import { adapterRoom, type LoadedAdapters, pageSizes, slotOptions } from '../../peft/page-sizes.js';
import type { LoadExecutor } from '../loaded-executor.js';
import { FAKE_MODEL } from './fake-adapters.js';
import { FakeExecutor } from './fake-executor.js';

/**
 * An executor module without a model: `executorModule` of the GptManager may name it. The engine path is read as
 * options: "fake:?vocabSize=100&maxSeqLen=64&stepMs=2&poisonToken=7&throwToken=8&failToLoad=reason".
 */
export const loadExecutor: LoadExecutor = ({ enginePath, params, modelType, maxBeamWidth }) => {
  const asked = new URLSearchParams(enginePath.replace(/^[^?]*\??/, ''));
  const number = (name: string, fallback: number) => Number(asked.get(name) ?? fallback);
  const failure = asked.get('failToLoad');
  if (failure !== null) throw new Error(failure);
  const maxSeqLen = number('maxSeqLen', 256);
  const limits = resolveLimits(params, { maxInputLen: maxSeqLen, maxSeqLen }, modelType, maxBeamWidth);
  const { maxNumTokens, maxSequences } = limits.microBatch;
  const bytesPerBlock = 4 * limits.tokensPerBlock;
  const numBlocks = kvBlocks(params, {
    limits,
    bytesPerBlock,
    available: { bytes: 2 ** 26, from: 'the fake' },
  });
  const adapters = adaptersOf(params.peftCacheManagerConfig);
  const executor = new FakeExecutor({
    threads: 1,
    maxNumTokens,
    maxNumSequences: maxSequences + limits.padding.sequences,
    maxLogitRows: maxSequences + limits.maxDraftRows,
    maxSeqLen: limits.maxSeqLen,
    ...limits.window?.options,
    numBlocks: numBlocks + limits.padding.blocks,
    numSecondaryBlocks: secondaryBlocks(params, bytesPerBlock),
    firstPaddingBlock: numBlocks,
    tokensPerBlock: limits.tokensPerBlock,
    kvDtype: 'f32',
    vocabSize: number('vocabSize', 100),
    poisonToken: number('poisonToken', -1),
    throwToken: number('throwToken', -1),
    dieToken: number('dieToken', -1),
    stepMs: number('stepMs', 0),
    ...(adapters === null ? {} : slotOptions(adapters)),
    allowsOverwriting: params.kvCacheConfig?.enableBlockReuse ?? false,
  });
  const rope = new RopeTable(
    { inverseFrequencies: Float32Array.of(1), scale: 1 },
    null,
    limits.maxNumSequences,
  );
  return {
    executor,
    limits,
    rope,
    endTokenIds: [],
    padTokenId: null,
    ...(adapters === null ? {} : { adapters }),
  };
};

/** Caches for adapters of the fake's model; null: none were asked for. */
function adaptersOf(config: PeftCacheConfig | undefined): LoadedAdapters | null {
  if (config === undefined) return null;
  const sizes = pageSizes(FAKE_MODEL, config);
  return adapterRoom(FAKE_MODEL, config, sizes, 2 ** 26);
}
