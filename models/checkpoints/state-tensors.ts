import { queryNames } from '../architectures/qwen35.js';
import type { ModelConfig } from '../model-config.js';
import { sliceOf } from './quantized/quantized-source.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
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
const NORM_LESS_1 = /(?<!linear_attn\.)(?:norm|layernorm)\.weight$/;

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
  if (architecture !== 'qwen35') return undefined;
  return /^model\.layers\.(0|[1-9]\d*)\.self_attn\.q_proj\.weight$/.exec(name)?.[1];
}

function apart(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const layer = layerOfQueries(name, config);
  return layer === undefined
    ? [[name, asVector(name, tensor, config)]]
    : queriesAndGates(tensor, layer, config);
}

const isConvolution = (name: string) => /\.(conv\.conv|conv1d)\.weight$/.test(name);

/** The weights of a convolution [columns, 1, taps] are one vector in the network. */
function asVector(name: string, tensor: RawTensor, { shortConv }: ModelConfig): NamedTensor {
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
  refuseUnsupportedType(tensor);
  refuseShape(tensor, [2 * numHeads * headDim, hiddenSize]);
  const count = 2 * numHeads;
  const byteLength = tensor.byteLength! / count;
  return Array.from({ length: count }, (_, i) => {
    const { query, gate } = queryNames(layer, i >> 1);
    const quantized = tensor.quantized && sliceOf(tensor.quantized, i, count);
    const place = { shape: [headDim, hiddenSize], offset: tensor.offset + i * byteLength, byteLength };
    return [i % 2 === 0 ? query : gate, { ...tensor, ...place, ...(quantized && { quantized }) }];
  });
}
