import type { EngineInfo, ExpertReading } from '../../callbacks/worker-messages.js';
import type { Engine } from '../../engine/building/engine.js';
import { type CheckedSampling, checkedSampling } from '../generation/sampling-defaults.js';
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

/** Bytes a second of a disk that nothing had to be read from at the start: of a usual solid-state drive. */
const ASSUMED_BYTES_PER_SECOND = 1e9;

/**
 * What to expect of a model whose experts are read from the disk. Where none of a token's experts is in memory, a sequence gets no more
 * tokens a second than the disk gives; what the system keeps in memory makes it faster.
 */
export function expertReadingNote({
  bytes,
  countedBytes,
  bytesPerToken,
  bytesPerSecond,
}: ExpertReading): string {
  const speed = bytesPerSecond ?? ASSUMED_BYTES_PER_SECOND;
  const source = bytesPerSecond === null ? 'assumed' : 'measured';
  return `Experts are read from the disk: ${megabytes(bytes)}, of which memory is counted for ${megabytes(countedBytes)}; ${megabytes(bytesPerToken)} a token at most, at ${megabytes(speed)}/s (${source}), so at most ${decimals(speed / bytesPerToken)} tokens/s for a sequence whose experts are not in memory.`;
}

const megabytes = (bytes: number) => `${decimals(bytes / 1e6)} MB`;
const decimals = (number: number) => (number < 10 ? number.toFixed(1) : number.toFixed(0));
