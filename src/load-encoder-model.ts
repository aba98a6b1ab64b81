import type { EncoderInfo } from '../callbacks/encoder-messages.js';
import { type Engine, EngineError } from '../engine/building/engine.js';
import type { EncoderParams } from '../engine/encoder/load-encoder.js';
import { EncoderHost } from '../host/encoder-host.js';
import type { CloseOptions } from '../host/in-process-host.js';
import { WorkerStuckError } from '../host/worker-supervisor.js';
import { EncoderCodec } from './encoding/encoder-codec.js';
import type { EncoderModel } from './encoding/encoder-model.js';
import {
  EngineEvents,
  findEngines,
  fingerprint,
  type LoadedModel,
  type ModelOptions,
  precisionsOf,
} from './load-model.js';
import { nameOf } from './model-name.js';
import type { IterationCounts } from './server/metrics/model-metrics.js';

/** How to load an encoder: of the options of other models those that it has a use for. */
export type EncoderOptions = Pick<
  ModelOptions,
  | 'model'
  | 'revision'
  | 'weights'
  | 'outputWeights'
  | 'executor'
  | 'threads'
  | 'computeWeight'
  | 'cacheDir'
  | 'maxNumSequences'
  | 'maxNumTokens'
  | 'maxSeqLen'
  | 'maxQueueSize'
  | 'watchdogTimeout'
  | 'workerRestart'
  | 'onDownload'
  | 'onProgress'
  | 'onDamaged'
  | 'signal'
>;

export interface EncoderInfoOfModel {
  /** The model's folder name. */
  name: string;
  /** Changes with the model's files, its precision and the version of skein. */
  fingerprint: string;
  enginePath: string;
  executor: string;
  /** See ModelInfo. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  weights: string;
  /** What it makes of texts: embeddings, or scores of pairs. */
  task: 'embedding' | 'score';
  /** Values of an embedding; 1 for scores. */
  dimensions: number;
  /** Longest input in tokens, special tokens included. */
  maxSeqLen: number;
}

/** What a batch counts in the metrics. */
export type EncoderStats = IterationCounts & { heldBlocks: number };

/** An encoder that runs. */
export interface LoadedEncoderModel
  extends Pick<LoadedModel, 'counts' | 'onStateChange' | 'onError' | 'isStuck' | 'close'> {
  kind: 'encoder';
  onStats(listener: (stats: EncoderStats) => void): () => void;
  /** As LoadedModel.info. */
  readonly info: EncoderInfoOfModel;
  model: EncoderModel;
}

/**
 * Builds the engine where that was not done before, and starts it.
 * @throws CheckpointError, EngineError, AddonError, each with one sentence about what is wrong.
 */
export async function loadEncoderModel(options: EncoderOptions): Promise<LoadedEncoderModel> {
  const { engine } = await findEngines(options);
  if (!isEncoder(engine)) {
    throw new EngineError(
      `${options.model}: this model generates text; Skein.load loads it, and it embeds none.`,
    );
  }
  return startEncoder(options, engine);
}

export function isEncoder(engine: Engine): boolean {
  return engine.manifest.config.encoder !== undefined;
}

/** Starts a worker for an encoder. @throws as loadEncoderModel. */
export async function startEncoder(options: EncoderOptions, engine: Engine): Promise<LoadedEncoderModel> {
  options.signal?.throwIfAborted();
  const events = new EngineEvents<EncoderStats>();
  const { maxQueueSize, workerRestart } = options;
  const params = encoderParams(options);
  const host = new EncoderHost({
    enginePath: engine.directory,
    params,
    maxQueueSize,
    workerRestart,
    ...(options.watchdogTimeout === undefined ? {} : { watchdogTimeoutMs: 1000 * options.watchdogTimeout }),
    onStateChange: (state, failure) => events.emitState(state, failure),
    onError: (error) => events.emitError(error),
    onBatch: (batch) => events.emitStats(batchStats(batch)),
  });
  const opening = EncoderCodec.open(engine.directory);
  const close = async (closing: CloseOptions = {}) => {
    await host.close(closing);
    await opening.then(
      (codec) => codec.close(),
      () => {},
    );
  };
  const [codec, loaded] = await Promise.all([opening, host.ready]).catch(async (error: unknown) => {
    await close({ abort: true });
    throw error;
  });
  if (options.signal?.aborted) await close({ abort: true });
  options.signal?.throwIfAborted();
  const { outputWidth, head, limits, vocabSize } = loaded;
  const { maxSeqLen } = limits;
  return {
    kind: 'encoder',
    get info() {
      return infoOf(options.model, engine, host.info ?? loaded);
    },
    model: { codec, engine: host, head, maxSeqLen, vocabSize, outputWidth },
    counts: () => ({ running: host.running, waiting: host.queued, maxBlocks: 0, usedBlocks: 0 }),
    onStats: (listener) => events.onStats(listener),
    onStateChange: (listener) => events.onState(listener),
    onError: (listener) => events.onError(listener),
    isStuck: () => host.failure instanceof WorkerStuckError,
    close,
  };
}

function infoOf(model: string, engine: Engine, loaded: EncoderInfo): EncoderInfoOfModel {
  const { executor, executorFallback, instructionSet, threads, head, outputWidth, limits } = loaded;
  return {
    name: nameOf(model),
    fingerprint: fingerprint(engine),
    enginePath: engine.directory,
    executor,
    executorFallback,
    instructionSet,
    threads,
    weights: precisionsOf(engine),
    task: head.kind,
    dimensions: outputWidth,
    maxSeqLen: limits.maxSeqLen,
  };
}

/** What of the options the worker is told. */
export function encoderParams(options: EncoderOptions): EncoderParams {
  const { executor, threads, computeWeight, maxNumTokens, maxNumSequences, maxSeqLen } = options;
  return { executor, threads, computeWeight, maxNumTokens, maxNumSequences, maxSeqLen };
}

interface BatchReport {
  sequences: number;
  tokens: number;
  forwardMs: number;
}

/** A batch as the iteration of an engine that only has contexts. */
function batchStats({ sequences, tokens, forwardMs }: BatchReport): EncoderStats {
  return {
    iterationMs: forwardMs,
    executorMs: forwardMs,
    waitedMs: 0,
    scheduledRequests: sequences,
    contextRequests: sequences,
    contextTokens: tokens,
    generatedTokens: 0,
    totalPauses: 0,
    queriedTokens: 0,
    reusedTokens: 0,
    drafts: 0,
    draftedTokens: 0,
    acceptedDraftTokens: 0,
    reusedBlocks: 0,
    missedBlocks: 0,
    swappedOutBlocks: 0,
    swappedInBlocks: 0,
    secondaryUsedBlocks: 0,
    heldBlocks: 0,
  };
}
