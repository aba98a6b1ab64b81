import type { RopeConfig } from '../../network/rope.js';
import {
  architectureOfGguf,
  encoderArchitectures,
  supportedGgufArchitectures,
} from '../architectures/index.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { checkHeads, eosTokenIds, tokenId } from './config-values.js';
import { readExactly, withFile } from './file-reading.js';
import { GATELESS_ACTIVATIONS } from './gateless-families.js';
import type { GgufHeader } from './gguf.js';
import { asGgufEncoder, encoderActivation } from './gguf-encoders.js';
import { expertsOfGguf, hasExperts, mayHaveExperts, SHARED_WIDTH } from './gguf-experts.js';
import { ggufFamilyFields, ggufGemmaFields, ggufLayerShapes, windowsOfGguf } from './gguf-families.js';
import { gemma4OfGguf } from './gguf-gemma4.js';
import { GgufKeys } from './gguf-keys.js';
import type { GgufMetadata } from './gguf-metadata.js';
import { ggufScanFields, numberOfSome } from './gguf-scans.js';
import { ggufStateFields, keyValueHeadsOfSome } from './gguf-states.js';
import { windowsOfEach } from './layer-windows.js';
import { withoutAttention } from './mamba2-config.js';
import type { RawTensor } from './raw-tensor.js';
import { axesOfSections, checkTheta, turnedPairs } from './rope-config.js';
import { refusalOfArchitecture } from './unknown-architecture.js';

const HAS_LAYER_NORM: ReadonlySet<string> = new Set([
  'gpt2',
  'cohere',
  'cohere2',
  'nemotron',
  ...encoderArchitectures,
]);
const HAS_NO_ROPE: ReadonlySet<string> = new Set(['gpt2', 'bert', 'mamba2']);

/**
 * Makes the ModelConfig from a GGUF file's metadata and tensors. `generation` is the generation_config.json
 * next to it.
 */
export function configOfGguf(header: GgufHeader, generation: ConfigFields | null): ModelConfig {
  const { metadata } = header;
  const { architecture, keys } = architectureOf(metadata);
  refuseUnsupported(metadata, keys, architecture);
  const tensors = new Map(header.tensors.map((tensor) => [tensor.name, tensor]));
  refuseRouterWithoutExperts(header, architecture, keys);

  const hiddenSize = keys.integer('embedding_length', 1, LIMITS.width);
  // Layers after the model's own guess further tokens.
  const guessing = keys.integer('nextn_predict_layers', 0, LIMITS.layers, 0);
  const numLayers = keys.integer('block_count', 1 + guessing, LIMITS.layers) - guessing;
  const alone = architecture === 'mamba2' ? withoutAttention(numLayers) : undefined;
  const uneven = ggufLayerShapes(keys, architecture, numLayers);
  const layers = alone ?? uneven;
  const numHeads = layers?.numHeads ?? keys.ofAllLayers('attention.head_count', numLayers, 1, LIMITS.heads);
  const numKvHeads =
    layers?.numKvHeads ??
    keyValueHeadsOfSome(keys, architecture, numLayers) ??
    numberOfSome(keys, architecture, 'attention.head_count_kv', numLayers) ??
    keys.ofAllLayers('attention.head_count_kv', numLayers, 1, LIMITS.heads, numHeads);
  const headDim =
    layers?.headDim ??
    keys.integer('attention.key_length', 2, LIMITS.heads, Math.floor(hiddenSize / numHeads));
  const valueDim = keys.integer('attention.value_length', 1, LIMITS.heads, headDim);
  if (valueDim !== headDim) throw keys.error('attention.value_length', `the key length ${headDim}`, valueDim);
  const shapes = alone === undefined ? (uneven?.layerShapes ?? [{ numHeads, numKvHeads, headDim }]) : [];
  for (const shape of shapes) checkHeads(header.file, shape.numHeads, shape.numKvHeads, shape.headDim);
  const experts = mayHaveExperts(keys, architecture)
    ? expertsOfGguf(keys, architecture, numLayers, tensors)
    : undefined;
  const maxPositions = keys.integer('context_length', 1, LIMITS.positions);
  const vocabSize = vocabSizeOf(metadata, keys, tensors.get('token_embd.weight'));
  const special = (name: string) => {
    const id = metadata.number(`tokenizer.ggml.${name}_token_id`);
    return id === undefined || !Number.isInteger(id) || id < 0 ? [] : [id];
  };

  const model: ModelConfig = {
    architecture,
    vocabSize,
    hiddenSize,
    intermediateSize:
      layers?.intermediateSize ??
      widthOfSome(keys, architecture, numLayers) ??
      keys.ofAllLayers('feed_forward_length', numLayers, 1, LIMITS.width, experts?.width),
    ...(uneven?.layerShapes && { layerShapes: uneven.layerShapes }),
    numLayers,
    numHeads,
    numKvHeads,
    headDim,
    rmsNormEpsilon: epsilonOf(keys, architecture),
    activation: activationOf(architecture, keys),
    ...biasesOf(tensors, architecture),
    ...headNormsOf(tensors, architecture),
    tieWordEmbeddings: !tensors.has('output.weight'),
    maxPositions,
    ...ofLayers(keys, architecture, numLayers, tensors),
    rope: HAS_NO_ROPE.has(architecture)
      ? { theta: 1, rotaryDim: 0, scaling: { type: 'none' } }
      : turnedPairs(architecture, headDim, ropeOf(keys, tensors, headDim, maxPositions)),
    ...(experts && { experts }),
    ...ggufFamilyFields(keys, architecture, numLayers, maxPositions),
    ...ggufStateFields(keys, architecture, numLayers),
    ...ggufScanFields(keys, architecture, { numLayers, headDim, ...(experts && { experts }) }, tensors),
    ...ggufGemmaFields(keys, architecture, { hiddenSize, numHeads, numLayers, headDim }),
    bosTokenId: tokenId(special('bos')[0], vocabSize),
    eosTokenIds: eosTokenIds(
      [generation?.tokenIds('eos_token_id') ?? [], special('eos'), special('eot'), special('eom')],
      vocabSize,
    ),
    padTokenId: tokenId(special('padding')[0], vocabSize),
  };
  return asGgufEncoder(header, keys, model);
}

/** What layers attend to, and of a Gemma 4 what they share. */
function ofLayers(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
  tensors: ReadonlyMap<string, RawTensor>,
): Pick<ModelConfig, 'slidingWindow'> & Partial<ModelConfig> {
  const windows = windowsOfGguf(keys, architecture, numLayers);
  if (architecture !== 'gemma4') return windows;
  return { ...windows, ...gemma4OfGguf(keys, windowsOfEach(windows, numLayers), tensors) };
}

/** Norms of heads, in files of families of which some have none. */
function headNormsOf(
  tensors: ReadonlyMap<string, RawTensor>,
  architecture: string,
): Pick<ModelConfig, 'headNorms' | 'ownHeadNorms'> {
  if (!tensors.has('blk.0.attn_q_norm.weight')) return {};
  if (architecture === 'glm4moe') return { headNorms: true };
  return architecture === 'cohere' ? { ownHeadNorms: true } : {};
}

/** MLP width of a file where some layers have no MLP, or have experts too; undefined for any other. */
function widthOfSome(keys: GgufKeys, architecture: string, numLayers: number): number | undefined {
  if (architecture === 'granite4' && hasExperts(keys)) return keys.integer(SHARED_WIDTH, 1, LIMITS.width);
  return numberOfSome(keys, architecture, 'feed_forward_length', numLayers);
}

function epsilonOf(keys: GgufKeys, architecture: string): number {
  const isLayerNorm = HAS_LAYER_NORM.has(architecture);
  const [ofLayerNorm, ofRmsNorm] = ['attention.layer_norm_epsilon', 'attention.layer_norm_rms_epsilon'];
  // Where a ModernBERT's config.json has its own name of it alone, the converter takes it for an RMSNorm's, and a Nemotron-H's for a LayerNorm's.
  if (architecture === 'modernbert') return keys.positive(ofLayerNorm, keys.number(ofRmsNorm));
  if (architecture === 'nemotronh') return keys.positive(ofRmsNorm, keys.number(ofLayerNorm));
  return keys.positive(isLayerNorm ? ofLayerNorm : ofRmsNorm);
}

function activationOf(architecture: string, keys: GgufKeys): ModelConfig['activation'] {
  if (encoderArchitectures.has(architecture)) return encoderActivation(keys, architecture);
  return GATELESS_ACTIVATIONS.get(architecture) ?? (/^(gemma|gpt2)/.test(architecture) ? 'geluTanh' : 'silu');
}

function architectureOf(metadata: GgufMetadata): { architecture: string; keys: GgufKeys } {
  const name = metadata.string('general.architecture');
  const keys = new GgufKeys(metadata, name ?? '');
  const architecture =
    name === undefined
      ? undefined
      : architectureOfGguf(name, {
          experts: hasExperts(keys),
          windows: (keys.number('attention.sliding_window') ?? 0) > 0,
        });
  if (architecture === undefined) {
    throw new CheckpointError(
      name === undefined
        ? `${metadata.file}: general.architecture, the name of the model's architecture, is missing.`
        : refusalOfArchitecture(metadata.file, name, supportedGgufArchitectures),
    );
  }
  return { architecture, keys };
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(metadata: GgufMetadata, keys: GgufKeys, architecture: string): void {
  const type = metadata.string('general.type') ?? 'model';
  if (type !== 'model') {
    throw new CheckpointError(`${metadata.file}: general.type should be model, found ${type.slice(0, 100)}.`);
  }
  if (!mayHaveExperts(keys, architecture) && hasExperts(keys)) {
    throw keys.error('expert_count', `0 (${architecture} has no experts)`, keys.number('expert_count'));
  }
}

/** A file that has experts and does not say how many would be asked for tensors that it never had. */
function refuseRouterWithoutExperts({ tensors }: GgufHeader, architecture: string, keys: GgufKeys): void {
  if (mayHaveExperts(keys, architecture)) return;
  const router = tensors.find(({ name }) => /^blk\.\d+\.ffn_gate_inp\.weight$/.test(name));
  if (router === undefined) return;
  throw keys.error(
    'expert_count',
    `the number of experts, since there is a router (${router.name})`,
    keys.number('expert_count'),
  );
}

function biasesOf(tensors: ReadonlyMap<string, RawTensor>, architecture: string) {
  return {
    attentionBias: hasBias(tensors, /^blk\.\d+\.attn_(q|k|v|qkv|output)\.bias$/),
    ...(architecture === 'seed_oss' && {
      attentionOutputBias: hasBias(tensors, /^blk\.\d+\.attn_output\.bias$/),
    }),
    ...(architecture === 'phimoe' && { outputBias: tensors.has('output.bias') }),
    mlpBias: hasBias(tensors, /^blk\.\d+\.ffn_(gate|up|down)\.bias$/),
  };
}

/**
 * True where any tensor is such a bias, since GGUF has no key for it. One bias requires all: the network has no place
 * for only some.
 */
function hasBias(tensors: ReadonlyMap<string, RawTensor>, pattern: RegExp): boolean {
  return [...tensors.keys()].some((name) => pattern.test(name));
}

function vocabSizeOf(metadata: GgufMetadata, keys: GgufKeys, embedding: RawTensor | undefined): number {
  const tokens = metadata.strings('tokenizer.ggml.tokens')?.length;
  const rows = embedding?.shape[0];
  const vocabSize = keys.integer('vocab_size', 1, LIMITS.vocabSize, rows ?? tokens);
  if (tokens !== undefined && tokens > vocabSize) {
    throw new CheckpointError(
      `${metadata.file}: the tokenizer has ${tokens} tokens, more than the vocabulary of ${vocabSize}.`,
    );
  }
  return vocabSize;
}

function ropeOf(
  keys: GgufKeys,
  tensors: ReadonlyMap<string, RawTensor>,
  headDim: number,
  maxPositions: number,
): RopeConfig {
  const theta = keys.positive('rope.freq_base', 10_000);
  const rotaryDim = keys.integer('rope.dimension_count', 2, headDim, headDim);
  if (rotaryDim % 2 !== 0) throw keys.error('rope.dimension_count', 'even', rotaryDim);
  const scaling = scalingOf(keys, tensors, rotaryDim, maxPositions);
  checkTheta(keys.file, theta, scaling);
  const axes = axesOf(keys, rotaryDim / 2);
  return { theta, rotaryDim, ...(axes === null ? {} : { axes }), scaling };
}

/** Architectures whose sections of RoPE take turns. */
const INTERLEAVED = new Set(['qwen3vl', 'qwen3vlmoe', 'qwen35', 'qwen35moe', 'qwen3next']);

/** Axes of RoPE in sections, of which llama.cpp names four, the last one for nothing; null: there are none. */
function axesOf(keys: GgufKeys, count: number): number[] | null {
  const key = 'rope.dimension_sections';
  const sections = keys.list(key);
  if (sections === undefined) return null;
  const given = Array.from(sections);
  const axes =
    given.slice(3).every((one) => one === 0) &&
    axesOfSections(given.slice(0, 3), count, INTERLEAVED.has(keys.architecture));
  if (!axes) throw keys.error(key, `three whole numbers that make up ${count}, and 0`, given.join(', '));
  return axes;
}

function scalingOf(
  keys: GgufKeys,
  tensors: ReadonlyMap<string, RawTensor>,
  rotaryDim: number,
  maxPositions: number,
): RopeConfig['scaling'] {
  const optional = (key: string) => (keys.number(key) === undefined ? null : keys.positive(key));
  const given = optional('rope.scaling.factor') ?? optional('rope.scale_linear') ?? 1;
  // Without a type the factor is linear. Phi-3's files have longrope's factors without naming the type.
  const usual = tensors.has('rope_factors_long.weight') ? 'longrope' : 'linear';
  const type = keys.string('rope.scaling.type') ?? usual;
  const factor = type === 'none' ? 1 : given;
  const originalMaxPositions = keys.integer(
    'rope.scaling.original_context_length',
    1,
    LIMITS.positions,
    maxPositions,
  );
  const attentionFactor = optional('rope.scaling.attn_factor') ?? optional('rope.scaling.yarn_attn_factor');
  const factors = tensors.get('rope_freqs.weight');
  if (type === 'none' || type === 'linear') {
    if (factors) return ofFactors(readFactors(factors, rotaryDim), factor);
    return factor === 1 ? { type: 'none' } : { type: 'linear', factor };
  }
  if (type === 'yarn') {
    const logMultiplier = optional('rope.scaling.yarn_log_multiplier');
    return {
      type: 'yarn',
      factor,
      originalMaxPositions,
      betaFast: keys.positive('rope.scaling.yarn_beta_fast', 32),
      betaSlow: keys.positive('rope.scaling.yarn_beta_slow', 1),
      attentionFactor,
      mscale: logMultiplier === null ? null : 1,
      mscaleAllDim: logMultiplier,
      // gpt-oss turns between its two ranges without a step, which no key says and llama.cpp leaves out.
      truncate: keys.architecture !== 'gpt-oss',
    };
  }
  if (type === 'longrope') {
    const long = tensors.get('rope_factors_long.weight');
    const short = tensors.get('rope_factors_short.weight');
    if (!long || !short) {
      throw new CheckpointError(
        `${keys.file}: longrope needs the tensors rope_factors_long.weight and rope_factors_short.weight.`,
      );
    }
    return {
      type: 'longrope',
      shortFactor: readFactors(short, rotaryDim),
      longFactor: readFactors(long, rotaryDim),
      factor: given === 1 ? maxPositions / originalMaxPositions : given,
      attentionFactor,
      originalMaxPositions,
    };
  }
  throw keys.error('rope.scaling.type', 'one of none, linear, yarn, longrope', type);
}

/** Divisor by which llama.cpp's converter writes a frequency of 0. */
const STANDS_STILL = 1e30;

/** RoPE of these divisors; those of Gemma 4 let the first dimensions of a head turn, and no others. */
function ofFactors(factors: number[], factor: number): RopeConfig['scaling'] {
  const isStill = (value: number) => value >= STANDS_STILL;
  const turned = factors.findIndex(isStill);
  const isProportional =
    turned > 0 && factors.every((value, i) => (i < turned ? value === 1 : isStill(value)));
  if (isProportional) return { type: 'proportional', turnedDim: 2 * turned, factor };
  return { type: 'factors', factors: factors.map((value) => value * factor) };
}

/** Numbers of the only kind of tensor that is read here: rotaryDim / 2 factors that belong to the configuration. */
function readFactors(tensor: RawTensor, rotaryDim: number): number[] {
  const expected = rotaryDim / 2;
  const { file, name, type, shape, offset } = tensor;
  if (type !== 'F32' || shape.length !== 1 || shape[0] !== expected) {
    throw new CheckpointError(
      `${file}: tensor ${name} should be F32 [${expected}], found ${type} [${shape.join(', ')}].`,
    );
  }
  const values = new Float32Array(expected);
  withFile(file, (fd) => readExactly(file, fd, new Uint8Array(values.buffer), offset));
  if (!values.every((value) => Number.isFinite(value) && value > 0)) {
    throw new CheckpointError(`${file}: tensor ${name} should hold numbers greater than 0.`);
  }
  return [...values];
}
