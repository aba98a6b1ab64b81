import type { RelativeBiases } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError, type TensorLocation } from './checkpoint.js';
import { expertSlices, routerName } from './expert-tensors.js';
import { gptOssTensors } from './gptoss-tensors.js';
import { openElmTensors } from './openelm-config.js';
import { type RawTensor, refuseShape } from './raw-tensor.js';
import { turnsPairs } from './rope-config.js';
import { ropeBertTensors } from './ropebert-config.js';
import { hasScanNames, scanModelTensors } from './scan-tensors.js';
import { stateModelTensors } from './state-tensors.js';
import type { UnreadTensor } from './unread-tensors.js';

/** A tensor under the name that the network asks for, with the steps of its conversion besides rounding. */
export type NamedTensor = RawTensor &
  Pick<TensorLocation, 'interleavedHeads' | 'interleavedColumns' | 'transposed' | 'addend' | 'byTurns'>;

/** Prefix of the tensors of a model with a head on it, which is left out: `bert.encoder.layer.0...` */
const ENCODER_PREFIXES = new Map([
  ['bert', /^(bert|roberta|electra|distilbert|albert|mpnet)\./],
  ['deberta', /^deberta\./],
  ['ropebert', /^(bert|nomic_bert|new|gte)\./],
  ['modernbert', /^model\./],
  ['clip', /^text_model\./],
  ['siglip', /^text_model\./],
]);
/** Tensors of a decoder that is stored by itself. */
const INSIDE_MODEL = /^(?:embed_tokens|layers|norm)\./;
/** Tensors of a head that guesses tokens, and of its layer. */
const HEAD = /^model\.mtp\./;
const HEAD_LAYER = /^(?:model\.)?mtp\.layers\.0\./;
const GPT2_PREFIX = /^transformer\./;
/** Matrices of GPT-2's layers, which its authors call Conv1D and store as [in, out]. */
const GPT2_TURNED = /\.(c_attn|c_proj|c_fc)\.weight$/;
/** Weights of norms that multiply by 1 + weight: those of Gemma and of Nemotron. */
const NORM_LESS_1 = /norm\.weight$/;
const HAS_NORMS_LESS_1 = /^(gemma[23]?|nemotron)$/;

/**
 * What transformers 5 calls tensors with the matrices of all experts of a layer, if set to write them as they
 * are in memory.
 */
const IN_MIXTURE = /\.(?:mlp|feed_forward)\.(experts\.|gate\.)/;
const STACKED =
  /^model\.layers\.(0|[1-9]\d*)\.(?:mlp|feed_forward)\.(experts\.(gate_up_proj|down_proj)|gate\.weight)$/;

/**
 * Tensors of safetensors files under the network's names. GGUF files hold them converted already.
 * @param textName the name of a file's tensor in a text model; null for one of another part of the model, which is left out
 */
export function namedTensors(
  tensors: readonly RawTensor[],
  config: ModelConfig,
  textName: (name: string) => string | null = (name) => name,
): Map<string, NamedTensor> {
  const named = new Map<string, NamedTensor>();
  for (const tensor of tensors) {
    const text = textName(decoderName(tensor.name, config));
    for (const [name, one] of text === null ? [] : converted(text, tensor, config)) {
      if (named.has(name)) throw new CheckpointError(`${tensor.file}: tensor ${name} is there twice.`);
      named.set(name, one);
    }
  }
  return named;
}

/**
 * Name of a tensor of a decoder; one that embeds is stored without the name of the model around it. The layer of a head that guesses
 * tokens, where the engine has it, is the one after the model's.
 */
function decoderName(name: string, { encoder, architecture, draftHead, numLayers }: ModelConfig): string {
  if (draftHead) return name.replace(HEAD_LAYER, `model.layers.${numLayers}.`).replace(HEAD, 'mtp.');
  const isOther = encoder === undefined || ENCODER_PREFIXES.has(architecture);
  return isOther ? name : name.replace(INSIDE_MODEL, 'model.$&');
}

/** DistilBERT's names of tensors in a layer, by BERT's. */
const DISTILBERT_LAYER: readonly (readonly [own: string, bert: string])[] = [
  ['attention.q_lin', 'attention.self.query'],
  ['attention.k_lin', 'attention.self.key'],
  ['attention.v_lin', 'attention.self.value'],
  ['attention.out_lin', 'attention.output.dense'],
  ['sa_layer_norm', 'attention.output.LayerNorm'],
  ['ffn.lin1', 'intermediate.dense'],
  ['ffn.lin2', 'output.dense'],
  ['output_layer_norm', 'output.LayerNorm'],
];

/** ALBERT's names of tensors in the one layer that all layers are, by BERT's. */
const ALBERT_LAYER: readonly (readonly [own: string, bert: string])[] = [
  ['attention.query', 'attention.self.query'],
  ['attention.key', 'attention.self.key'],
  ['attention.value', 'attention.self.value'],
  ['attention.dense', 'attention.output.dense'],
  ['attention.LayerNorm', 'attention.output.LayerNorm'],
  ['ffn', 'intermediate.dense'],
  ['ffn_output', 'output.dense'],
  ['full_layer_layer_norm', 'output.LayerNorm'],
];

/** BERT's names of a tensor of ALBERT, one for each layer; any other stays as it is. */
function albertNames(name: string, numLayers: number): string[] {
  const [, part, kind] =
    /^encoder\.albert_layer_groups\.0\.albert_layers\.0\.(.*)\.(weight|bias)$/.exec(name) ?? [];
  const [, bert] = ALBERT_LAYER.find(([own]) => own === part) ?? [];
  if (bert === undefined)
    return [name.replace(/^encoder\.embedding_hidden_mapping_in\./, 'embeddings_project.')];
  return Array.from({ length: numLayers }, (_, layer) => `encoder.layer.${layer}.${bert}.${kind}`);
}

/** MPNet's names of tensors in a layer, by BERT's. */
const MPNET_LAYER: readonly (readonly [own: string, bert: string])[] = [
  ['attention.attn.q', 'attention.self.query'],
  ['attention.attn.k', 'attention.self.key'],
  ['attention.attn.v', 'attention.self.value'],
  ['attention.attn.o', 'attention.output.dense'],
  ['attention.LayerNorm', 'attention.output.LayerNorm'],
];

/** BERT's name of a tensor of MPNet; any other stays as it is. */
function nameOfMpnet(name: string): string {
  const [, layer, part, kind] =
    /^encoder\.layer\.(\d+)\.(attention\.[\w.]*)\.(weight|bias)$/.exec(name) ?? [];
  const [, bert] = MPNET_LAYER.find(([own]) => own === part) ?? [];
  return bert === undefined ? name : `encoder.layer.${layer}.${bert}.${kind}`;
}

/** BERT's name of a tensor of DistilBERT; any other stays as it is. */
function bertName(name: string): string {
  const [, layer, part, kind] = /^transformer\.layer\.(\d+)\.(.*)\.(weight|bias)$/.exec(name) ?? [];
  const [, bert] = DISTILBERT_LAYER.find(([own]) => own === part) ?? [];
  return bert === undefined ? name : `encoder.layer.${layer}.${bert}.${kind}`;
}

/** A tensor under the network's name, or its slices under theirs. */
function converted(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const { architecture, experts } = config;
  const isMixture =
    config.attendingLayers === undefined ? architecture !== 'ropebert' : IN_MIXTURE.test(name);
  if (hasScanNames(config)) return scanModelTensors(name, tensor, config);
  if (architecture === 'gptoss') return gptOssTensors(name, tensor, config);
  if (architecture === 'gemma4') return gemma4Tensors(name, tensor, config);
  if (experts !== undefined && isMixture) return expertsOf(name, tensor, config);
  if (architecture === 'openelm') return openElmTensors(name, tensor);
  if (config.attendingLayers !== undefined) return stateModelTensors(name, tensor, config);
  const isGpt2 = architecture === 'gpt2';
  const prefix = isGpt2 ? GPT2_PREFIX : (ENCODER_PREFIXES.get(architecture) ?? null);
  const inside = prefix === null ? name : name.replace(prefix, '');
  if (architecture === 'ropebert') return ropeBertTensors(inside, tensor, config);
  if (architecture === 'bert' && config.encoder?.relative !== undefined)
    return [[nameOfMpnet(inside), asVectorOfBiases(inside, tensor, config)]];
  if (architecture === 'bert')
    return albertNames(bertName(inside), config.numLayers).map((one) => [one, tensor]);
  const own = inside;
  if (isGpt2 && GPT2_TURNED.test(own)) {
    if (tensor.quantized === undefined) return [[own, { ...tensor, transposed: true }]];
    throw new CheckpointError(
      `${tensor.file}: tensor ${tensor.name} is quantised, which is not supported for GPT-2.`,
    );
  }
  if (turnsPairs(architecture)) return [[own, inNetworkOrder(own, tensor, config)]];
  if (HAS_NORMS_LESS_1.test(architecture) && NORM_LESS_1.test(own)) return [[own, { ...tensor, addend: 1 }]];
  return [[own, tensor]];
}

/**
 * A tensor whose rows of heads are interleaved, where RoPE turns pairs of neighbours: a projection of queries or keys, or the weights of
 * their heads' norms [heads, headDim], which are one vector here.
 */
export function inNetworkOrder(own: string, tensor: NamedTensor, config: ModelConfig): NamedTensor {
  const [, which, kind] = /\.self_attn\.([qk])_(proj|norm)\./.exec(own) ?? [];
  if (which === undefined) return tensor;
  const interleavedHeads = which === 'q' ? config.numHeads : config.numKvHeads;
  if (kind === 'proj') return { ...tensor, interleavedHeads };
  if (!config.ownHeadNorms) return tensor;
  refuseShape(tensor, [interleavedHeads, config.headDim]);
  return { ...tensor, shape: [interleavedHeads * config.headDim], interleavedHeads };
}

/** The table of MPNet's biases [buckets, heads], as the vector that it is in the network; any other tensor stays as it is. */
function asVectorOfBiases(name: string, tensor: RawTensor, { encoder, numHeads }: ModelConfig): RawTensor {
  if (name !== 'encoder.relative_attention_bias.weight') return tensor;
  const { buckets } = encoder!.relative as RelativeBiases;
  refuseShape(tensor, [buckets, numHeads]);
  return { ...tensor, shape: [buckets * numHeads] };
}

function expertsOf(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const [, layer, part, stack] = STACKED.exec(name) ?? [];
  const { numLayers, draftHead } = config;
  if (layer === undefined || Number(layer) >= numLayers + (draftHead ? 1 : 0)) return [[name, tensor]];
  if (part === 'gate.weight') return [[routerName(config.architecture, layer), tensor]];
  return expertSlices(tensor, config, layer, stack === 'down_proj' ? ['down'] : ['gate', 'up']);
}

/** Tensors of safetensors that are not read; `tensors` has the network's names. */
export function unreadTensors(
  tensors: ReadonlyMap<string, NamedTensor>,
  read: ReadonlyMap<string, unknown>,
): UnreadTensor[] {
  return [...tensors].flatMap(([own, { file, name }]) => (read.has(own) ? [] : [{ file, name, own }]));
}

const LAYER = /^model\.layers\.(0|[1-9]\d*)\.(.*)$/;

/**
 * Tensors of Gemma 4. The router and the experts of a layer are parts of its mixture here; those of all experts are one tensor in the file:
 *
 *   layers.0.router.scale              ->  layers.0.mixture.router.scale.weight
 *   layers.0.experts.gate_up_proj      ->  layers.0.mixture.experts.E.gate_proj.weight, ...up_proj.weight
 *
 * @throws CheckpointError for another shape, or a type of which no slice can be read
 */
function gemma4Tensors(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const [, layer, own] = LAYER.exec(name) ?? [];
  if (layer === undefined || config.experts === undefined || Number(layer) >= config.numLayers)
    return [[name, tensor]];
  if (own === 'experts.gate_up_proj') return expertSlices(tensor, config, layer, ['gate', 'up']);
  if (own === 'experts.down_proj') return expertSlices(tensor, config, layer, ['down']);
  const inMixture = name.replace(/\.(router|experts)\./, '.mixture.$1.');
  return [[inMixture.replace(/\.router\.scale$/, '$&.weight'), tensor]];
}
