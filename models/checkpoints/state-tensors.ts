import { NEXT_PARTS, queryNames } from '../architectures/qwen35.js';
import type { ModelConfig } from '../model-config.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import { rowSlices } from './row-slices.js';
import type { NamedTensor } from './tensor-layout.js';

/** LFM2's names, by the network's. */
const LFM2_NAMES: readonly (readonly [own: RegExp, name: string])[] = [
  [/^model\.embedding_norm\./, 'model.norm.'],
  [/\.operator_norm\./, '.input_layernorm.'],
  [/\.ffn_norm\./, '.post_attention_layernorm.'],
  [/\.feed_forward\.w1\./, '.mlp.gate_proj.'],
  [/\.feed_forward\.w3\./, '.mlp.up_proj.'],
  [/\.feed_forward\.w2\./, '.mlp.down_proj.'],
  [/\.self_attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.self_attn\.([qk])_layernorm\./, '.self_attn.$1_norm.'],
];

export const isLfm2 = ({ architecture }: Pick<ModelConfig, 'architecture'>) =>
  /^lfm2(moe)?$/.test(architecture);

/** Norms of Qwen3.5 multiply by 1 + weight, but for those of the delta rule. */
const NORM_LESS_1 = /(?<!linear_attn\.)(?:norm|layernorm)\.weight$|^mtp\.pre_fc_norm_\w+\.weight$/;

/** A tensor of a model whose layers keep states, under the network's name; its slices, where it has what the network takes apart. */
export function stateModelTensors(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] {
  if (isLfm2(config))
    return [
      [
        LFM2_NAMES.reduce((one, [own, other]) => one.replace(own, other), name),
        asVector(name, tensor, config),
      ],
    ];
  if (NORM_LESS_1.test(name)) return [[name, { ...tensor, addend: 1 }]];
  return apart(name, tensor, config);
}

/** The same of a GGUF, under Hugging Face's name: 1 is added to its norms already. */
export function stateGgufTensors(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] {
  const [columns = 0, taps = 0] = tensor.shape;
  const conv = isConvolution(name) && tensor.shape.length === 2;
  return apart(name, conv ? { ...tensor, shape: [columns, 1, taps] } : tensor, config);
}

/** Names that the network has for a tensor under Hugging Face's name, or for its slices. */
export function stateNames(name: string, config: ModelConfig): string[] {
  return partsOf(name, config)?.map(([part]) => part) ?? [name];
}

function apart(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const parts = partsOf(name, config);
  return parts === undefined
    ? [[name, asVector(name, tensor, config)]]
    : slices(tensor, parts, config.hiddenSize);
}

/** Names and rows of the slices of a matrix that the network takes apart; undefined for any other. */
function partsOf(name: string, config: ModelConfig): [string, number][] | undefined {
  if (isLfm2(config)) return undefined;
  const [, layer] = /^model\.layers\.(0|[1-9]\d*)\.self_attn\.q_proj\.weight$/.exec(name) ?? [];
  if (layer !== undefined) return queriesAndGates(layer, config);
  return config.architecture === 'qwen3next' ? partsOfNext(name, config.delta!) : undefined;
}

export const isConvolution = (name: string) => /\.(conv\.conv|conv1d)\.weight$/.test(name);

/** The weights of a convolution [columns, 1, taps] are one vector in the network. */
export function asVector(name: string, tensor: NamedTensor, { shortConv }: ModelConfig): NamedTensor {
  if (!isConvolution(name)) return tensor;
  const [columns = 0] = tensor.shape;
  refuseShape(tensor, [columns, 1, shortConv!.taps]);
  return { ...tensor, shape: [columns * shortConv!.taps] };
}

/**
 * Rows of queries and of gates alternate, head by head:
 *
 *   | head 0: query | head 0: gate | head 1: query | head 1: gate | ...      each a slice of the tensor's bytes
 */
function queriesAndGates(layer: string, { numHeads, headDim }: ModelConfig): [string, number][] {
  return Array.from({ length: 2 * numHeads }, (_, i): [string, number] => {
    const { query, gate } = queryNames(layer, i >> 1);
    return [i % 2 === 0 ? query : gate, headDim];
  });
}

/** Projections of a GGUF of Qwen3-Next, each with parts of all heads of keys. */
const OF_ALL_HEADS = { in_proj_qkv: ['query', 'key', 'value'], in_proj_z: ['z'] } as const;

/**
 * Qwen3-Next has the parts of a projection for one head of keys after the other, with the rows of its heads of values. llama.cpp's converter
 * puts the heads of each part one after another:
 *
 *   in_proj_qkvz   | head 0: query, key, value, z | head 1: query, key, ...
 *   in_proj_qkv    | query of head 0, of head 1 ... | key of head 0, ...        in_proj_z   | z of head 0, of head 1 ...
 */
function partsOfNext(
  name: string,
  { keyHeads, valueHeads, keyDim, valueDim }: NonNullable<ModelConfig['delta']>,
): [string, number][] | undefined {
  const [, prefix, projection] = /^(.*\.linear_attn\.)(in_proj_\w+)\.weight$/.exec(name) ?? [];
  if (projection === undefined) return undefined;
  const ofKey = valueHeads / keyHeads;
  const values = ofKey * valueDim;
  const rows = { query: keyDim, key: keyDim, value: values, z: values, b: ofKey, a: ofKey };
  const heads = Array.from({ length: keyHeads }, (_, head) => head);
  const part = (of: string, head: number, one: keyof typeof rows): [string, number] => [
    `${prefix}${of}.${head}.${one}.weight`,
    rows[one],
  ];
  if (projection === 'in_proj_qkvz' || projection === 'in_proj_ba')
    return heads.flatMap((head) => NEXT_PARTS[projection].map((one) => part(projection, head, one)));
  if (projection === 'in_proj_qkv' || projection === 'in_proj_z')
    return OF_ALL_HEADS[projection].flatMap((one) => heads.map((head) => part('in_proj_qkvz', head, one)));
  return undefined;
}

/** Slices of a matrix that has the rows of all parts. */
function slices(
  tensor: RawTensor,
  parts: readonly [string, number][],
  columns: number,
): [string, NamedTensor][] {
  refuseUnsupportedType(tensor);
  refuseShape(tensor, [parts.reduce((sum, [, rows]) => sum + rows, 0), columns]);
  return rowSlices(tensor, parts, columns);
}
