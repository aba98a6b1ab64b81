import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutorChoice, ExecutorName } from '../../callbacks/gpt-manager-options.js';
import { DEFAULT_KV_FRACTION, DEFAULT_STATE_FRACTION } from '../../callbacks/options/kv-cache-options.js';
import { RECOMMENDED_NAMES } from '../../callbacks/sampling-params.js';
import { longestSequence } from '../../engine/building/builder.js';
import { type Engine, layOutWeights, openEngine } from '../../engine/building/engine.js';
import {
  automaticOutputPrecision,
  automaticPrecision,
  layerTypes,
} from '../../engine/building/weight-precision.js';
import {
  type EnginePrecision,
  type EngineTensor,
  type OutputPrecision,
  weightBytesOf,
} from '../../engine/directory/engine-directory.js';
import { storedParts } from '../../engine/directory/stored-precision.js';
import type { ExecutorKind } from '../../engine/executors/executor-kind.js';
import { likelyExecutor } from '../../engine/kinds/choose-executor.js';
import { availableMemory } from '../../kvcache/available-memory.js';
import type { KvDtype, StateShape } from '../../kvcache/cache-shape.js';
import { kvBytesPerBlock, stateBytesPerSlot } from '../../kvcache/kv-cache-size.js';
import { planNetwork } from '../../models/architectures/index.js';
import type { Checkpoint, PartLeftAside, TensorType } from '../../models/checkpoints/checkpoint.js';
import { eosTokenIds } from '../../models/checkpoints/config-values.js';
import { type OpenOptions, openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { keptNumbers } from '../../models/checkpoints/quantized/quantized-blocks.js';
import type { RecommendedSampling } from '../../models/checkpoints/recommended-sampling.js';
import type { ExpertsConfig, ModelConfig } from '../../models/model-config.js';
import { readTokenizerFiles, Tokenizer, type TokenizerSourceFiles } from '../../models/tokenizer/index.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { RemoteModel } from '../hub/model-headers.js';
import { type ModelTask, taskOf } from '../serving/model-task.js';
import { describeSight, leftBeside, type SightDescription, sightBytes } from './described-sight.js';
import { slowParts } from './slow-parts.js';
import { type TemplateAbilities, templateAbilities } from './template-abilities.js';

/** Description of a model, and of what it takes on this machine. Bytes are whole numbers. */
export interface ModelDescription {
  /** Path that was opened; null: the model is on the hub alone. */
  path: string | null;
  /** What the hub has, of a model that is not here; null: it is here. */
  remote: RemoteModel | null;
  format: 'safetensors' | 'gguf' | 'engine';
  architecture: string;
  /** Purpose of the model. */
  task: ModelTask;
  parameters: number;
  /**
   * Experts of a layer, how many of them a token goes to, the number of layers that have them, and whether
   * there is an additional MLP that all tokens go to; null where layers have one MLP each.
   */
  experts: { count: number; used: number; layers: number; hasShared: boolean } | null;
  /**
   * Number of tensors of each type in the checkpoint, where matrices of experts count one by one, and those of safetensors that are
   * quantised under the type of their codes (`FP8`, `INT4`); null for an engine directory.
   */
  storedTypes: Record<string, number> | null;
  /** Bytes of the tensors that are read, as they are stored; null for an engine directory. */
  storedBytes: number | null;
  /** Parts of the model that its files have and nothing here computes. */
  leftAside: PartLeftAside[];
  /** Sentences on what is computed differently from what the files' names say. */
  remarks: string[];
  /** Abilities of the chat template; null: the model has none. */
  chatTemplate: TemplateAbilities | null;
  /** Settings of sampling that its files recommend, by the API's names; null: an encoder, or an engine directory of a version that did not read them. */
  sampling: RecommendedSampling | null;
  /** Tokens that end an answer, the usual one first; none for an encoder. */
  endTokens: { id: number; text: string }[];
  vocabSize: number;
  numLayers: number;
  hiddenSize: number;
  /**
   * Number of tokens that layers with a window attend to, and number of such layers; null where every layer attends to
   * the whole sequence.
   */
  attentionWindow: { tokens: number; layers: number } | null;
  /** Number of tokens of the longest sequence. */
  maxSeqLen: number;
  /** Precision of `--weights auto`, or that of the engine directory. */
  weights: EnginePrecision;
  outputWeights: OutputPrecision;
  weightBytes: number;
  /** Number of matrices, or of their parts, of each precision, where `weights` says that each has one of its own; null: they do not. */
  weightForms: Record<string, number> | null;
  /** Executor that would run here. */
  executor: ExecutorName;
  /** Why the executor is not the fastest one, and how to get that; null: it is the fastest, or was asked for. */
  executorFallback: string | null;
  /** Instruction set of the executor's kernels. */
  instructionSet: string;
  threads: number;
  /** Sentences on what will be slow here, and why; none: nothing is known to be. */
  slow: string[];
  /** KV cache; null for an encoder, and where no layer attends. */
  kvCache: KvDescription | null;
  /** States of sequences; null: no layer keeps one. */
  states: StateDescription | null;
  /** What it sees pictures with; null: it reads texts alone. */
  pictures: SightDescription | null;
}

export interface StateDescription {
  bytesPerSequence: number;
  /** Sequences whose states fit into their share of the memory free now, without snapshots and logs of drafts. */
  sequences: number;
}

export interface KvDescription {
  dtype: KvDtype;
  bytesPerToken: number;
  /** Bytes left for the KV cache after the weights: the default share of the memory free now. */
  bytes: number;
  tokens: number;
  /** Numbers of sequences of some lengths that fit. */
  sequences: { length: number; count: number }[];
}

const LENGTHS = [512, 2048, 8192, 32768, 131072];
/** Number of tokens of a block, by default; caches consist of whole blocks. */
const TOKENS_PER_BLOCK = 32;

export interface DescriptionOptions {
  /** A sequence length to show in addition to some usual ones. */
  length?: number | undefined;
  /** Choice of the executor: see OptionalParams.executor. */
  executor?: ExecutorChoice | undefined;
  /** Number type of the KV cache; default: the executor's type for these weights. */
  kvDtype?: KvDtype | undefined;
  /** GGUF of the part that sees, of a GGUF; default: the one next to it. */
  mmproj?: string | undefined;
  /** Of a model whose headers alone are at the path. */
  remote?: RemoteModel | null;
}

/**
 * Describes a model without loading or building it.
 * @param path a Hugging Face directory, a GGUF file or a folder with one, or an engine directory
 * @throws CheckpointError, EngineError, TokenizerError, AddonError, ExecutorUnavailableError; ParameterError for a cache
 * type that the executor lacks.
 */
export async function describeModel(
  path: string,
  { length, executor, kvDtype, mmproj, remote = null }: DescriptionOptions = {},
): Promise<ModelDescription> {
  const opened = existsSync(join(path, 'engine.json'))
    ? await ofEngine(openEngine(path))
    : ofCheckpoint(path, { hasWeights: remote === null, mmproj });
  const { config, plan, files, layerTypes: types, widened, sampling, text, ...others } = opened;
  const { weights, outputWeights, weightBytes, leftAside, ...rest } = others;
  const { encoder, experts } = config;
  const tokenizer = new Tokenizer(files);
  const { kind, fallback } = await likelyExecutor({ executor, kvDtype }, plan);
  const maxSeqLen = longestSequence(config);
  const dtype = kvDtype ?? kind.kvDtypeFor(weights);
  const computing = await kind.computesWith();
  const pictures = describeSight(text ?? path, weights, mmproj !== undefined);
  const taken = weightBytes + sightBytes(pictures);
  const room = encoder === undefined ? await roomFor(plan, kind, taken) : null;
  const states = room === null || plan.states === undefined ? null : statesOf(plan.states, room);
  const most = states?.sequences ?? Number.POSITIVE_INFINITY;
  const left = (room ?? 0) * (states === null ? 1 : 1 - DEFAULT_STATE_FRACTION);
  const kvCache =
    room !== null && plan.caches.length > 0
      ? kvOf(plan, { bytes: left, dtype, maxSeqLen, length, most })
      : null;
  const { instructionSet } = computing;
  return {
    path: remote === null ? path : null,
    remote,
    ...rest,
    leftAside: leftBeside(leftAside, pictures),
    architecture: config.architecture,
    task: taskOf(encoder?.head),
    experts: experts === undefined ? null : descriptionOf(experts, config.numLayers),
    sampling: encoder === undefined ? sampling : null,
    endTokens: encoder === undefined ? endTokensOf(config, tokenizer) : [],
    vocabSize: config.vocabSize,
    numLayers: config.numLayers,
    hiddenSize: config.hiddenSize,
    attentionWindow: windowOf(config),
    maxSeqLen,
    weights,
    outputWeights,
    weightBytes,
    executor: kind.name,
    executorFallback: fallback,
    ...computing,
    slow: slowParts({
      fallback,
      executor: kind.name,
      instructionSet,
      layerTypes: types,
      widened,
      weights,
      weightBytes,
      cacheTokens: kvCache?.tokens ?? null,
      unproven: tokenizer.unproven,
    }),
    kvCache,
    states,
    pictures,
  };
}

function endTokensOf(
  { eosTokenIds: configured, vocabSize }: ModelConfig,
  tokenizer: Tokenizer,
): ModelDescription['endTokens'] {
  const ids = eosTokenIds([configured, tokenizer.endTokenIds], vocabSize);
  return ids.map((id) => ({ id, text: tokenizer.tokenEntry(id) ?? '' }));
}

function windowOf({
  slidingWindow,
  layerWindows,
  numLayers,
}: ModelConfig): ModelDescription['attentionWindow'] {
  if (slidingWindow !== null) return { tokens: slidingWindow, layers: numLayers };
  const windows = (layerWindows ?? []).filter((window) => window !== null);
  return windows.length === 0 ? null : { tokens: windows[0]!, layers: windows.length };
}

interface Opened
  extends Pick<
    ModelDescription,
    'format' | 'parameters' | 'storedTypes' | 'storedBytes' | 'leftAside' | 'remarks' | 'chatTemplate'
  > {
  config: ModelConfig;
  plan: NetworkPlan;
  /** Null: an engine directory. */
  text: Checkpoint | null;
  files: TokenizerSourceFiles;
  layerTypes: TensorType[];
  widened: number;
  sampling: RecommendedSampling | null;
  weights: EnginePrecision;
  outputWeights: OutputPrecision;
  weightBytes: number;
  weightForms: Record<string, number> | null;
}

function ofCheckpoint(path: string, options: OpenOptions): Opened {
  const checkpoint = openCheckpoint(path, options);
  const { format, config, tensors, leftAside, remarks, tokenizer } = checkpoint;
  const plan = planNetwork(config);
  const weights = automaticPrecision(checkpoint, plan);
  const outputWeights = automaticOutputPrecision(weights, checkpoint, plan);
  const partsOf = (weight: PlanWeight) => storedParts(checkpoint, weight);
  const storedTypes: Record<string, number> = {};
  let [storedBytes, widened] = [0, 0];
  for (const tensor of tensors.values()) {
    const { type, byteLength, quantized } = tensor;
    const shown = quantized === undefined ? type : CODES[quantized.codes];
    storedTypes[shown] = (storedTypes[shown] ?? 0) + 1;
    storedBytes += byteLength;
    if (quantized !== undefined && keptNumbers(tensor, quantized) === 'bf16') widened++;
  }
  const laidOut = layOutWeights(plan, weights, outputWeights, partsOf);
  return {
    format,
    config,
    plan,
    text: checkpoint,
    files: tokenizer,
    layerTypes: layerTypes(checkpoint, plan),
    widened,
    sampling: checkpoint.recommended(RECOMMENDED_NAMES),
    parameters: parametersOf(plan),
    storedTypes,
    storedBytes,
    leftAside,
    remarks,
    chatTemplate: templateAbilities(tokenizer),
    weights,
    outputWeights,
    weightBytes: laidOut.byteLength,
    weightForms: weights === 'stored' ? formsOf(laidOut.tensors) : null,
  };
}

/** Types of quantised safetensors for people. */
const CODES = { u4: 'INT4', u8: 'INT8', i8: 'INT8', e4m3: 'FP8', e2m1: 'FP4' };

/** Numbers of matrices of each precision; vectors and the embedding's few numbers are f32 in any case. */
function formsOf(tensors: readonly EngineTensor[]): Record<string, number> {
  const forms: Record<string, number> = {};
  for (const { rows, dtype } of tensors) if (rows > 1) forms[dtype] = (forms[dtype] ?? 0) + 1;
  return forms;
}

async function ofEngine({ directory, manifest, plan }: Engine): Promise<Opened> {
  const { config, precision, outputPrecision } = manifest;
  const files = await readTokenizerFiles(directory);
  return {
    format: 'engine',
    config,
    plan,
    text: null,
    files,
    layerTypes: [],
    widened: 0,
    sampling: manifest.sampling ?? null,
    parameters: parametersOf(plan),
    storedTypes: null,
    storedBytes: null,
    leftAside: manifest.leftAside ?? [],
    remarks: manifest.remarks ?? [],
    chatTemplate: templateAbilities(files),
    weights: precision,
    outputWeights: outputPrecision,
    weightBytes: weightBytesOf(manifest),
    weightForms: precision === 'stored' ? formsOf(manifest.tensors) : null,
  };
}

const parametersOf = ({ weights }: NetworkPlan) =>
  weights.reduce((sum, { rows, columns }) => sum + rows * columns, 0);

interface Room {
  bytes: number;
  dtype: KvDtype;
  maxSeqLen: number;
  length: number | undefined;
  /** Most sequences that other memory has room for. */
  most: number;
}

/**
 * Bytes for keys, values and states in addition to what is taken: the default share of the memory that is
 * free now.
 */
async function roomFor(plan: NetworkPlan, kind: ExecutorKind, taken: number): Promise<number> {
  const available = availableMemory().bytes;
  const room = (await kind.kvRoom?.(plan, available)) ?? Math.max(0, available - taken);
  return Math.floor(DEFAULT_KV_FRACTION * room);
}

function statesOf(states: readonly StateShape[], room: number): StateDescription {
  const bytesPerSequence = stateBytesPerSlot(states);
  return { bytesPerSequence, sequences: Math.floor((DEFAULT_STATE_FRACTION * room) / bytesPerSequence) };
}

function kvOf(plan: NetworkPlan, { bytes: room, dtype, maxSeqLen, length, most }: Room): KvDescription {
  const bytesPerToken = kvBytesPerBlock(plan.caches, 1, dtype);
  const bytes = Math.floor(room);
  const blocks = Math.floor(bytes / (bytesPerToken * TOKENS_PER_BLOCK));
  const lengths = [...LENGTHS, maxSeqLen, ...(length === undefined ? [] : [length])]
    .filter((wanted) => wanted <= maxSeqLen)
    .sort((a, b) => a - b);
  const sequences = [...new Set(lengths)].map((wanted) => ({
    length: wanted,
    count: Math.min(most, Math.floor(blocks / Math.ceil(wanted / TOKENS_PER_BLOCK))),
  }));
  return { dtype, bytesPerToken, bytes, tokens: blocks * TOKENS_PER_BLOCK, sequences };
}

function descriptionOf(
  { count, used, layers, sharedWidth }: ExpertsConfig,
  numLayers: number,
): ModelDescription['experts'] {
  const withExperts = layers?.filter((has) => has).length ?? numLayers;
  return { count, used, layers: withExperts, hasShared: sharedWidth !== undefined };
}
