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

/** Norms of Qwen3.5 multiply by 1 + weight, but for those of the delta rule. */
const NORM_LESS_1 = /(?<!linear_attn\.)(?:norm|layernorm)\.weight$|^mtp\.pre_fc_norm_\w+\.weight$/;

/** A tensor of a model whose layers keep states, under the network's name; its slices, where it has what the network takes apart. */
export function stateModelTensors(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] {
  if (config.architecture === 'lfm2')
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
  const layer = layerOfQueries(name, config);
  if (layer === undefined) return [name];
  return Array.from({ length: config.numHeads }, (_, head) => Object.values(queryNames(layer, head))).flat();
}

/** The layer whose queries and gates a tensor has; undefined: it has none. */
function layerOfQueries(name: string, { architecture }: ModelConfig): string | undefined {
  if (architecture === 'lfm2') return undefined;
  return /^model\.layers\.(0|[1-9]\d*)\.self_attn\.q_proj\.weight$/.exec(name)?.[1];
}

function apart(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const layer = layerOfQueries(name, config);
  if (layer !== undefined) return queriesAndGates(tensor, layer, config);
  const [, projection] = BY_HEADS_OF_KEYS.exec(name) ?? [];
  return projection === undefined
    ? [[name, asVector(name, tensor, config)]]
    : byHeadsOfKeys(name, tensor, projection, config);
}

/** Projections of Qwen3-Next that the network takes apart. */
const BY_HEADS_OF_KEYS = /\.linear_attn\.(in_proj_qkvz|in_proj_ba)\.weight$/;

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
function queriesAndGates(tensor: RawTensor, layer: string, config: ModelConfig): [string, NamedTensor][] {
  const { numHeads, headDim, hiddenSize } = config;
  const parts = Array.from({ length: 2 * numHeads }, (_, i): [string, number] => {
    const { query, gate } = queryNames(layer, i >> 1);
    return [i % 2 === 0 ? query : gate, headDim];
  });
  return slices(tensor, parts, hiddenSize);
}

/** Qwen3-Next has the parts of a projection for one head of keys after the other, with the rows of its heads of values. */
function byHeadsOfKeys(
  name: string,
  tensor: RawTensor,
  projection: string,
  { delta, hiddenSize }: ModelConfig,
): [string, NamedTensor][] {
  const { keyHeads, valueHeads, keyDim, valueDim } = delta!;
  const ofKey = valueHeads / keyHeads;
  const rows: Record<string, number> = {
    query: keyDim,
    key: keyDim,
    value: ofKey * valueDim,
    z: ofKey * valueDim,
    b: ofKey,
    a: ofKey,
  };
  const own = name.replace(/weight$/, '');
  const parts = Array.from({ length: keyHeads }, (_, head) =>
    NEXT_PARTS[projection as keyof typeof NEXT_PARTS].map((part): [string, number] => [
      `${own}${head}.${part}.weight`,
      rows[part]!,
    ]),
  ).flat();
  return slices(tensor, parts, hiddenSize);
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
