import { option, says } from '../../base/named-text.js';
import type { EncoderInfo } from '../../callbacks/encoder-messages.js';
import { type Engine, EngineError } from '../../engine/building/engine.js';
import type { EncoderParams } from '../../engine/encoder/load-encoder.js';
import { checkIsolation } from '../../engine/options/check-isolation.js';
import { checkRanks } from '../../engine/options/check-ranks.js';
import { type EncoderBatch, EncoderHost, type EncoderHostOptions } from '../../host/encoder-host.js';
import { EncoderCodec } from '../encoding/encoder-codec.js';
import type { EncoderModel } from '../encoding/encoder-model.js';
import { filledTexts } from '../encoding/filled-texts.js';
import { findEngines } from './find-engines.js';
import { leadingRank } from './leading-rank.js';
import type { ModelOptions } from './model-options.js';
import { hasSight, towerParams } from './pictures/sight-memory.js';
import type { EncoderInfoOfModel, RunningModel } from './running-model.js';
import { engineFacts, type HostListeners, startEngine } from './start-engine.js';

/** Options of Skein.load that an encoder uses. */
export const ENCODER_OPTIONS = [
  'model',
  'revision',
  'weights',
  'outputWeights',
  'executor',
  'threads',
  'computeWeight',
  'isolate',
  'pinThreads',
  'tensorParallelSize',
  'pipelineParallelSize',
  'rankTimeoutSeconds',
  'ranksAddress',
  'ranksSecretFile',
  'joinTimeoutSeconds',
  'cacheDir',
  'maxActiveRequests',
  'maxBatchTokens',
  'maxContextTokens',
  'maxQueuedRequests',
  'watchdogTimeoutSeconds',
  'workerRestart',
  'onDownload',
  'onProgress',
  'onDamaged',
  'onMissingRanks',
  'signal',
] as const;

/** Options for loading an encoder: those of ModelOptions that an encoder uses. */
export type EncoderOptions = Pick<ModelOptions, (typeof ENCODER_OPTIONS)[number]>;

/**
 * Builds the engine if it is not in the cache, and starts it.
 * @throws CheckpointError, EngineError, AddonError, each with one sentence about what is wrong.
 */
export async function loadEncoderModel(options: EncoderOptions): Promise<RunningModel<'encoder'>> {
  const { engine } = await findEngines(options);
  if (!isEncoder(engine)) {
    throw new EngineError(
      `${options.model}: this model generates text; Skein.load loads it, and it embeds none.`,
    );
  }
  return startEncoder(options, engine);
}

function isEncoder(engine: Engine): boolean {
  return engine.manifest.config.encoder !== undefined;
}

/** Starts a worker for an encoder. @throws as loadEncoderModel. */
export async function startEncoder(
  options: EncoderOptions,
  engine: Engine,
): Promise<RunningModel<'encoder'>> {
  const { host, codec, loaded, events, running } = await startEngine({
    options,
    startHost: (listeners: HostListeners<EncoderBatch>) =>
      new EncoderHost(hostOptions(options, engine, listeners)),
    openCodec: () => EncoderCodec.open(engine.directory, engine.manifest.config.encoder!),
  });
  const { outputWidth, head, limits, vocabSize } = loaded;
  const { maxSeqLen } = limits;
  const { filler } = codec;
  if (filler !== null && filler.length > maxSeqLen) {
    await running.close({ abort: true });
    throw new EngineError(
      says`${options.model}: each text of this model has ${filler.length} tokens, and ${option('maxContextTokens')} or ${option('maxBatchTokens')} leave ${maxSeqLen}.`,
    );
  }
  const engineOfTexts = filler === null ? host : filledTexts(host, filler);
  const { fields, close: closePictures } = await picturesOf(options, engine);
  return {
    kind: 'encoder',
    get info() {
      return infoOf(options.model, engine, host.info ?? loaded);
    },
    model: { codec, engine: engineOfTexts, head, maxSeqLen, vocabSize, outputWidth, ...fields },
    statistics: {
      counts: () => ({ running: host.running, waiting: host.queued }),
      onStats: (listener) => events.onStats(listener),
    },
    ...running,
    close: async (how) => void (await Promise.all([closePictures(), running.close(how)])),
  };
}

/** What the model embeds pictures with, where it does; its code is imported by models of two towers alone. */
async function picturesOf(
  options: EncoderOptions,
  { directory }: Engine,
): Promise<{ fields: Pick<EncoderModel, 'pictures' | 'whyBlind'>; close(): Promise<void> }> {
  const nothing = { fields: {}, close: async () => {} };
  if (!hasSight(directory)) return nothing;
  const { openPictureEncoder } = await import('./pictures/open-picture-encoder.js');
  const opened = openPictureEncoder(directory, towerParams(options));
  if (typeof opened === 'string') return { ...nothing, fields: { whyBlind: opened } };
  return { fields: { pictures: opened.encoder }, close: opened.close };
}

function hostOptions(
  options: EncoderOptions,
  engine: Engine,
  { onStep, onStateChange, onError, onMissing }: HostListeners<EncoderBatch>,
): EncoderHostOptions {
  const { maxQueuedRequests: maxQueueSize, workerRestart, watchdogTimeoutSeconds, isolate } = options;
  const { rankTimeoutSeconds } = options;
  checkIsolation(options);
  const ranks = leadingRank(options);
  checkRanks({ ...(ranks === undefined ? {} : { ranks }), optionalParams: sizesOf(options) });
  return {
    enginePath: engine.directory,
    params: encoderParams(options),
    ranks: ranks && { ...ranks, onMissing },
    rankTimeoutMs: rankTimeoutSeconds === undefined ? undefined : 1000 * rankTimeoutSeconds,
    maxQueueSize,
    isolate,
    workerRestart,
    ...(watchdogTimeoutSeconds === undefined ? {} : { watchdogTimeoutMs: 1000 * watchdogTimeoutSeconds }),
    onBatch: onStep,
    onStateChange,
    onError,
  };
}

function infoOf(model: string, engine: Engine, loaded: EncoderInfo): EncoderInfoOfModel {
  const { head, outputWidth, limits } = loaded;
  return {
    ...engineFacts(model, engine, loaded),
    task: head.kind,
    dimensions: outputWidth,
    ...(head.kind === 'classification' && { labels: head.labels }),
    maxSeqLen: limits.maxSeqLen,
  };
}

/** Numbers of ranks, where they are given. */
function sizesOf({ tensorParallelSize, pipelineParallelSize }: EncoderOptions) {
  return {
    ...(tensorParallelSize === undefined ? {} : { tensorParallelSize }),
    ...(pipelineParallelSize === undefined ? {} : { pipelineParallelSize }),
  };
}

/** Parameters for the worker, made of the options. */
export function encoderParams(options: EncoderOptions): EncoderParams {
  const { executor, threads, computeWeight, pinThreads } = options;
  return {
    executor,
    threads,
    computeWeight,
    pinThreads,
    ...sizesOf(options),
    maxNumTokens: options.maxBatchTokens,
    maxNumSequences: options.maxActiveRequests,
    maxSeqLen: options.maxContextTokens,
  };
}
