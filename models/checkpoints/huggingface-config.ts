import { architectureOfHuggingFace, supportedHuggingFaceArchitectures } from '../architectures/index.js';
import type { ModelConfig } from '../model-config.js';
import { configOfBert } from './bert-config.js';
import { CheckpointError } from './checkpoint.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import type { JsonObject } from './file-reading.js';
import { ropeOfHuggingFace } from './rope-config.js';

const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['silu', 'silu'],
  ['swish', 'silu'],
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
]);

/** ModelConfig from config.json. `file` is its path, for errors; `generation` is generation_config.json's contents. */
export function configOfHuggingFace(
  file: string,
  json: JsonObject,
  generation: ConfigFields | null,
): ModelConfig {
  const config = new ConfigFields(file, json);
  const { name, architecture } = architectureOf(config);
  if (architecture === 'bert') return configOfBert(config, name);
  refuseUnsupported(config);

  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const hiddenSize = config.integer('hidden_size', 1, LIMITS.width);
  const numHeads = config.integer('num_attention_heads', 1, LIMITS.heads);
  const numKvHeads = config.integer('num_key_value_heads', 1, LIMITS.heads, numHeads);
  if (config.raw('head_dim') === undefined && hiddenSize % numHeads !== 0) {
    throw config.error('hidden_size', `a multiple of the ${numHeads} attention heads`);
  }
  const headDim = config.integer('head_dim', 2, LIMITS.heads, hiddenSize / numHeads);
  const maxPositions = config.integer('max_position_embeddings', 1, LIMITS.positions);
  checkHeads(file, numHeads, numKvHeads, headDim);
  const activation = ACTIVATIONS.get(config.raw('hidden_act') ?? 'silu');
  if (!activation) throw config.error('hidden_act', `one of ${[...ACTIVATIONS.keys()].join(', ')}`);

  return {
    architecture,
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer('intermediate_size', 1, LIMITS.width),
    numLayers: config.integer('num_hidden_layers', 1, LIMITS.layers),
    numHeads,
    numKvHeads,
    headDim,
    rmsNormEpsilon: config.positive('rms_norm_eps', 1e-6),
    activation,
    attentionBias: config.boolean('attention_bias', false),
    mlpBias: config.boolean('mlp_bias', false),
    tieWordEmbeddings: config.boolean('tie_word_embeddings', false),
    maxPositions,
    slidingWindow: slidingWindowOf(config, name),
    rope: ropeOfHuggingFace(config, headDim, maxPositions),
    bosTokenId: tokenId(config.tokenIds('bos_token_id')[0], vocabSize),
    eosTokenIds: eosTokenIds(
      [generation?.tokenIds('eos_token_id') ?? [], config.tokenIds('eos_token_id')],
      vocabSize,
    ),
    padTokenId: tokenId(config.tokenIds('pad_token_id')[0], vocabSize),
  };
}

function architectureOf(config: ConfigFields): { name: string; architecture: string } {
  const names = config.raw('architectures');
  const name = Array.isArray(names) ? names[0] : undefined;
  const architecture = typeof name === 'string' ? architectureOfHuggingFace(name) : undefined;
  if (typeof name !== 'string' || architecture === undefined) {
    throw config.error('architectures', `one of ${supportedHuggingFaceArchitectures.join(', ')}`);
  }
  return { name, architecture };
}

/** What transformers' MistralConfig takes where config.json has no such field; null there means no window. */
const MISTRAL_SLIDING_WINDOW = 4096;

/** Mistral's layers all have the same window. Llama has none: a field that says otherwise is not this network. */
function slidingWindowOf(config: ConfigFields, name: string): number | null {
  if (config.raw('use_sliding_window') === false) return null;
  if (name !== 'MistralForCausalLM') {
    if (config.raw('sliding_window') === undefined) return null;
    throw config.error('sliding_window', `absent: ${name} has no attention window`);
  }
  const layerTypes = config.raw('layer_types');
  if (Array.isArray(layerTypes) && layerTypes.some((type) => type !== 'sliding_attention')) {
    throw config.error('layer_types', 'sliding_attention for each layer: mixed layers are not supported');
  }
  if (!config.has('sliding_window')) return MISTRAL_SLIDING_WINDOW;
  if (config.raw('sliding_window') === undefined) return null;
  return config.integer('sliding_window', 1, LIMITS.positions);
}

/** What would be computed wrongly, silently, if it were not read. */
function refuseUnsupported(config: ConfigFields): void {
  if (config.raw('quantization_config') !== undefined) {
    throw config.error(
      'quantization_config',
      'absent: weights in F32, F16 and BF16 are read, or a GGUF file',
    );
  }
  if (config.raw('rope_interleaved') === true) throw config.error('rope_interleaved', 'false');
  if (config.raw('num_local_experts') !== undefined) {
    throw config.error('num_local_experts', 'absent: mixtures of experts are not supported');
  }
}

export function checkHeads(where: string, numHeads: number, numKvHeads: number, headDim: number): void {
  if (numHeads % numKvHeads !== 0) {
    throw new CheckpointError(
      `${where}: the ${numHeads} attention heads should be a multiple of the ${numKvHeads} key-value heads.`,
    );
  }
  if (headDim % 2 !== 0 || numHeads * headDim > LIMITS.width * 4) {
    throw new CheckpointError(`${where}: ${numHeads} heads of ${headDim} dimensions are not supported.`);
  }
}

/** Several lists without repeats; ids beyond the vocabulary can never be drawn and are left out. */
export function eosTokenIds(lists: readonly (readonly number[])[], vocabSize: number): number[] {
  return [...new Set(lists.flat())].filter((id) => id < vocabSize);
}

export function tokenId(id: number | undefined, vocabSize: number): number | null {
  return id === undefined || id >= vocabSize ? null : id;
}
