import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { Engine } from '../../engine/building/engine.js';
import { type CheckedSampling, checkedSampling } from '../generation/sampling-defaults.js';
import { expertReadingNote } from './expert-reading.js';
import { loweredContextNote } from './lowered-context.js';
import type { ModelOptions } from './model-options.js';
import type { ModelInfo } from './running-model.js';
import { engineFacts } from './start-engine.js';

/** Makes the properties of a model of what its engine says at present. */
export function infoReader(options: ModelOptions, engine: Engine): (loaded: EngineInfo) => ModelInfo {
  const { model, generationConfig = 'auto' } = options;
  const sampling = checkedSampling(generationConfig === 'none' ? {} : (engine.manifest.sampling ?? {}));
  const note = loweredContextNote(options, engine);
  return (loaded) => modelInfo(model, engine, loaded, sampling, note);
}

function modelInfo(
  model: string,
  engine: Engine,
  loaded: EngineInfo,
  { defaults: sampling, leftOut: samplingLeftOut }: CheckedSampling,
  contextNote: string | null,
): ModelInfo {
  const kvTokens = loaded.numBlocks * loaded.tokensPerBlock;
  // A sequence that the whole cache cannot hold would be refused later, with less of an explanation. With a window any
  // length fits.
  const maxSeqLen = Math.min(loaded.maxSeqLen, loaded.maxAttentionWindow === null ? kvTokens : Infinity);
  return {
    ...engineFacts(model, engine, loaded),
    kvDtype: loaded.kvDtype,
    maxChunkMs: loaded.maxChunkMs,
    kvTokens,
    kvCacheBytes: loaded.memory.kvCacheBytes + (loaded.memory.draft?.kvCacheBytes ?? 0),
    tokensPerBlock: loaded.tokensPerBlock,
    secondaryBlocks: secondaryBlocks(loaded),
    maxInputLen: Math.min(loaded.maxInputLen, maxSeqLen - 1),
    maxSeqLen,
    loweredContext: contextNote,
    expertReading: loaded.expertReading === undefined ? null : expertReadingNote(loaded.expertReading),
    sampling,
    samplingLeftOut,
    remarks: engine.manifest.remarks ?? [],
  };
}

/** Number of secondary blocks: blocks of both pools have the same size. */
function secondaryBlocks({ numBlocks, memory }: EngineInfo): number {
  return Math.floor((memory.secondaryKvCacheBytes * numBlocks) / memory.kvCacheBytes) || 0;
}
