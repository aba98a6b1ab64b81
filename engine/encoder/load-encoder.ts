import type { EncoderBatchLimits, EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { ExecutorChoice, InstructionSet, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { SeatData } from '../../callbacks/ranks-options.js';
import type { ExecutorMemory } from '../../callbacks/worker-messages.js';
import { type EncoderConfig, tokenWidth } from '../../models/encoder-config.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { NetworkPlan } from '../../network/plan.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import { RopeTable } from '../batch/rope-table.js';
import { EngineError, loadableEngine, openEngine } from '../building/engine.js';
import { engineDigest } from '../building/engine-digest.js';
import { engineFingerprint } from '../building/engine-fingerprint.js';
import type { ExecutorOptions } from '../executors/executor.js';
import type { ExecutorKind } from '../executors/executor-kind.js';
import { likelyExecutor, requireSupport, startOnExecutor } from '../kinds/choose-executor.js';
import { openSeat, threadsOf } from '../ranks/seat.js';
import type { MemoryNeeds } from '../worker/memory-split.js';
import { ENCODER_TOKENS_PER_BLOCK, EncoderBatch, encoderBlocks, encoderRows } from './encoder-batch.js';

/** Settings of an encoder; one that is absent has the engine's value, or the default. */
export interface EncoderParams {
  /** See OptionalParams.executor. */
  executor?: ExecutorChoice | undefined;
  threads?: number | undefined;
  maxNumTokens?: number | undefined;
  maxNumSequences?: number | undefined;
  maxSeqLen?: number | undefined;
  instructionSet?: InstructionSet | undefined;
  /** See ExecutorOptions.computeWeight. */
  computeWeight?: number | undefined;
  /** See OptionalParams. */
  pinThreads?: OptionalParams['pinThreads'] | undefined;
  tensorParallelSize?: number | undefined;
  pipelineParallelSize?: number | undefined;
}

/** Tokens of a batch: these, or as many as the model's longest text has, up to the second number. */
const DEFAULT_ENCODER_NUM_TOKENS = [2048, 8192] as const;
const DEFAULT_ENCODER_NUM_SEQUENCES = 64;

/** An encoder ready to run. */
export interface LoadedEncoder {
  /** See EngineInfo. */
  fingerprint: string;
  executor: string;
  /** See LoadedExecutor. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  limits: EncoderBatchLimits;
  vocabSize: number;
  /** Number of values of an embedding, or of scores: a row of output has those of its token after them, if the head has layers over tokens. */
  outputWidth: number;
  config: EncoderConfig;
  memory: ExecutorMemory;
  /** Computes one row for each sequence, or for each of its tokens, as it asks for [rows x (outputWidth + tokenWidth(head))]: a view that is valid until the next call. */
  encode(sequences: readonly EncoderSequence[]): Float32Array;
  close(): void;
}

/**
 * Opens the engine directory of an encoder and starts the requested executor, or the best that runs here.
 * @param seat it is rank 0 of a group; absent: it is alone
 * @throws EngineError if the directory is no encoder's; Error if there is not enough memory
 */
export async function loadEncoder(
  enginePath: string,
  params: EncoderParams = {},
  heartbeat?: Int32Array,
  seat?: SeatData,
): Promise<LoadedEncoder> {
  const { started, fallback } = await startOnExecutor(params, async (kind) => {
    const prepared = prepare(kind, enginePath, params, { heartbeat, seat });
    const own = seat === undefined ? {} : { seat: openSeat(seat) };
    return { ...prepared, executor: await kind.open(prepared.loadable, { ...prepared.options, ...own }) };
  });
  const { executor, engine, config, loadable, limits } = started;
  const batch = new EncoderBatch(limits, config, ropeTableOf(engine.manifest.config, limits.maxNumSequences));
  return {
    fingerprint: engineFingerprint(engineDigest(engine, loadable.tensors), executor),
    executor: executor.name,
    executorFallback: fallback,
    instructionSet: executor.instructionSet,
    threads: executor.options.threads,
    limits,
    vocabSize: loadable.plan.vocabSize,
    outputWidth: loadable.plan.outputWidth - tokenWidth(config.head),
    config,
    memory: executor.memory(),
    encode: (sequences) => {
      batch.pack(sequences);
      return executor.forward(batch);
    },
    close: () => executor.close(),
  };
}

/** Frequencies of an encoder's RoPE, by sequence where they depend on its length. */
export function ropeTableOf({ rope }: ModelConfig, maxNumSequences: number): RopeTable {
  const perLength = ropeDependsOnLength(rope) ? (length: number) => ropeFrequencies(rope, length) : null;
  return new RopeTable(ropeFrequencies(rope), perLength, maxNumSequences);
}

/** Memory that an encoder needs where models share memory: its pool is a part of its workspace. Takes none. */
export async function encoderMemoryNeeds(enginePath: string, params: EncoderParams): Promise<MemoryNeeds> {
  const { kind } = await likelyExecutor(params);
  const { loadable, options } = prepare(kind, enginePath, params);
  const { fixed, kvCache } = await kind.measure(loadable, options);
  return { fixed: { ...fixed, workspace: fixed.workspace + kvCache }, mostBytes: 0 };
}

/** Gathers an encoder's settings before any memory is taken for it. */
function prepare(
  kind: ExecutorKind,
  enginePath: string,
  params: EncoderParams,
  { heartbeat, seat }: { heartbeat?: Int32Array | undefined; seat?: SeatData | undefined } = {},
) {
  const engine = openEngine(enginePath);
  const { manifest } = engine;
  const config = manifest.config.encoder;
  if (config === undefined) {
    throw new EngineError(
      `${enginePath}: this model generates text; it is no encoder, so it has no embeddings or scores.`,
    );
  }
  const limits = encoderLimits(params, manifest.maxSeqLen);
  const loadable = loadableEngine(engine);
  const options: ExecutorOptions = {
    threads: threadsOf(kind, params, seat),
    ...limits,
    maxLogitRows: encoderRows(limits, config.head),
    numBlocks: encoderBlocks(limits),
    tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
    // Two bytes instead of four save nothing, since keys and values are read in the layer that writes them; products of pairs of bf16 do.
    // Scores by distance are computed in f32.
    kvDtype: scoresDistances(loadable.plan) ? 'f32' : kind.kvDtypeFor(manifest.precision),
    ...(params.instructionSet === undefined ? {} : { instructionSet: params.instructionSet }),
    ...(params.computeWeight === undefined ? {} : { computeWeight: params.computeWeight }),
    pinThreads: params.pinThreads ?? 'auto',
    ...(heartbeat === undefined ? {} : { heartbeat }),
  };
  requireSupport(kind, loadable.plan);
  return { engine, config, limits, options, loadable };
}

function scoresDistances({ ops }: NetworkPlan): boolean {
  return ops.some((op) => op.op === 'attention' && op.relative !== undefined);
}

function defaultNumTokens(longest: number): number {
  const [usual, most] = DEFAULT_ENCODER_NUM_TOKENS;
  return Math.max(usual, Math.min(longest, most));
}

/** Limits of a batch; a sequence is computed in one piece, so none is longer than a batch. */
function encoderLimits(params: EncoderParams, engineSeqLen: number): EncoderBatchLimits {
  const {
    maxNumTokens = defaultNumTokens(Math.min(params.maxSeqLen ?? engineSeqLen, engineSeqLen)),
    maxNumSequences = DEFAULT_ENCODER_NUM_SEQUENCES,
    maxSeqLen = engineSeqLen,
  } = params;
  return { maxNumTokens, maxNumSequences, maxSeqLen: Math.min(maxSeqLen, engineSeqLen, maxNumTokens) };
}
