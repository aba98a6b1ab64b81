import { architectureOfHuggingFace, supportedHuggingFaceArchitectures } from '../architectures/index.js';
import type { ModelConfig } from '../model-config.js';
import { configOfBert } from './bert-config.js';
import { CheckpointError } from './checkpoint.js';
import { configOfClip } from './clip-config.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, checkHeads, specialTokens } from './config-values.js';
import { configOfDeberta } from './deberta-config.js';
import { asEncoder } from './decoder-encoder.js';
import { decoderFamily } from './decoder-families.js';
import { expertsOfHuggingFace, refuseExperts } from './experts-config.js';
import type { JsonObject } from './file-reading.js';
import { configOfGpt2 } from './gpt2-config.js';
import { configOfMamba2 } from './mamba2-config.js';
import { configOfModernBert } from './modernbert-config.js';
import { configOfOpenElm } from './openelm-config.js';
import { configOfRopeBert } from './ropebert-config.js';
import { refusalOfArchitecture } from './unknown-architecture.js';
import { BOTH_WAYS_FIELD, LEVELS_FIELD, wrapperNames } from './wrappers.js';

const RMS_NORM_EPSILON: [string, number] = ['rms_norm_eps', 1e-6];

/**
 * Makes the ModelConfig from config.json. `file` is its path, for errors; `generation` is the content of
 * generation_config.json.
 */
export function configOfHuggingFace(
  file: string,
  json: JsonObject,
  generation: ConfigFields | null,
): ModelConfig {
  const config = new ConfigFields(file, json);
  const { name, architecture } = architectureOf(config);
  if (architecture === 'bert') return configOfBert(config, name);
  if (architecture === 'deberta') return configOfDeberta(config, name);
  if (architecture === 'modernbert') return configOfModernBert(config, name);
  if (architecture === 'ropebert') return configOfRopeBert(config, name);
  if (architecture === 'clip' || architecture === 'siglip') return configOfClip(config, architecture);
  refuseUnsupported(config);
  if (architecture === 'openelm') return configOfOpenElm(config, generation);
  if (architecture === 'mamba2') return configOfMamba2(config, name, generation);
  const family = decoderFamily(architecture);
  if (family?.experts === undefined && !family?.ownExperts) refuseExperts(config, name);
  if (family === undefined) return configOfGpt2(config, generation);

  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const hiddenSize = config.integer('hidden_size', 1, LIMITS.width);
  const numHeads = config.integer('num_attention_heads', 1, LIMITS.heads);
  const numKvHeads = config.integer('num_key_value_heads', 1, LIMITS.heads, numHeads);
  const usualHeadDim = family.headDim ?? hiddenSize / numHeads;
  if (config.raw('head_dim') === undefined && !Number.isInteger(usualHeadDim)) {
    throw config.error('hidden_size', `a multiple of the ${numHeads} attention heads`);
  }
  const headDim = config.integer('head_dim', 2, LIMITS.heads, usualHeadDim);
  const maxPositions = config.integer('max_position_embeddings', 1, LIMITS.positions);
  checkHeads(file, numHeads, numKvHeads, headDim);
  const numLayers = config.integer('num_hidden_layers', 1, LIMITS.layers);
  const [activationField, usualActivation] = family.activation ?? ['hidden_act', 'silu'];
  const named = config.raw(activationField) ?? usualActivation;
  const activation = named === family.ownActivation ? 'none' : ACTIVATIONS.get(named);
  if (!activation) throw config.error(activationField, `one of ${[...ACTIVATIONS.keys()].join(', ')}`);

  const model: ModelConfig = {
    architecture,
    vocabSize,
    hiddenSize,
    // Where all layers have mixtures there may be no such field.
    intermediateSize: config.integer(
      'intermediate_size',
      1,
      LIMITS.width,
      (family.experts ?? family.ownExperts) && 1,
    ),
    numLayers,
    numHeads,
    numKvHeads,
    headDim,
    rmsNormEpsilon: config.positive(...(family.epsilon ?? RMS_NORM_EPSILON)),
    activation,
    attentionBias: config.boolean('attention_bias', false),
    mlpBias: config.boolean('mlp_bias', false),
    tieWordEmbeddings: config.boolean('tie_word_embeddings', family.tied ?? false),
    maxPositions,
    ...family.read(config, { name, numLayers, headDim, maxPositions }),
    ...(family.experts && { experts: expertsOfHuggingFace(config, name, numLayers, family.experts) }),
    ...promptLevels(config, numLayers),
    ...(config.boolean(BOTH_WAYS_FIELD, false) && { bothWaysInPictures: 'all' as const }),
    ...specialTokens(config, generation, vocabSize),
  };
  return asEncoder(config, name, model);
}

function promptLevels(config: ConfigFields, numLayers: number): Pick<ModelConfig, 'promptLevels'> {
  const levels = Math.min(config.integer(LEVELS_FIELD, 0, LIMITS.layers, 0), numLayers);
  return levels === 0 ? {} : { promptLevels: levels };
}

function architectureOf(config: ConfigFields): { name: string; architecture: string } {
  const names = config.raw('architectures');
  const name = Array.isArray(names) ? names[0] : undefined;
  const architecture = typeof name === 'string' ? architectureOfHuggingFace(name) : undefined;
  if (typeof name !== 'string')
    throw config.error('architectures', "a list with the name of the model's class");
  if (architecture === undefined) {
    const known = [...supportedHuggingFaceArchitectures, ...wrapperNames];
    throw new CheckpointError(refusalOfArchitecture(config.where, name, known));
  }
  return { name, architecture };
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields): void {
  if (config.raw('rope_interleaved') === true) throw config.error('rope_interleaved', 'false');
}
