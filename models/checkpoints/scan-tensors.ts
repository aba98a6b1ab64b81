import { SHARED_MLP } from '../architectures/granite4.js';
import { scanNorm } from '../architectures/scan-layer.js';
import type { ModelConfig } from '../model-config.js';
import { type ExpertMatrix, expertSlices, routerName } from './expert-tensors.js';
import { interleavedHeads } from './gguf-tensor-names.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import { rowSlices } from './row-slices.js';
import { asVector, isConvolution } from './state-tensors.js';
import type { NamedTensor } from './tensor-layout.js';

/** Families' own names, by the network's. */
const NAMES: Readonly<Record<string, readonly (readonly [own: RegExp, name: string])[]>> = {
  mamba2: backbone(),
  nemotronh: [
    [/\.mixer\.([qkvo])_proj\./, '.self_attn.$1_proj.'],
    [/\.mixer\.(up|down)_proj\./, '.mlp.$1_proj.'],
    [/\.mixer\.(gate|experts|shared_experts)\./, '.mlp.$1.'],
    ...backbone(),
  ],
  falconh1: [
    [/^model\.final_layernorm\./, 'model.norm.'],
    [/\.pre_ff_layernorm\./, '.post_attention_layernorm.'],
    [/\.feed_forward\./, '.mlp.'],
  ],
};

/** Names of Mamba2's own code; some files have `model.` before them. */
function backbone(): [RegExp, string][] {
  return [
    [/^(model\.)?lm_head\./, 'lm_head.'],
    [/^(model\.)?backbone\./, 'model.'],
    [/^model\.embeddings?\./, 'model.embed_tokens.'],
    [/^model\.norm_f\./, 'model.norm.'],
    [/^(model\.layers\.\d+)\.norm\./, '$1.input_layernorm.'],
    [/\.mixer\./, '.mamba.'],
  ];
}

/** Whether a model has layers with scans, or names as those that have. */
export function hasScanNames({ scan, architecture }: ModelConfig): boolean {
  return scan !== undefined || architecture === 'granite4';
}

/** A tensor of such a model under the network's name, or its slices under theirs. */
export function scanModelTensors(
  own: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] {
  const names = NAMES[config.architecture] ?? [];
  const name = names.reduce((one, [from, to]) => one.replace(from, to), own);
  return (
    graniteTensors(name, tensor, config) ??
    nemotronExperts(name, tensor, config) ??
    normsApart(name, tensor, config)
  );
}

/** The same of a GGUF, under Hugging Face's name. */
export function scanGgufTensors(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] {
  const [first = 0, second = 0] = tensor.shape;
  const heads = interleavedHeads(name, config);
  const isPair = tensor.shape.length === 2;
  if (isPair && isConvolution(name))
    return normsApart(name, { ...tensor, shape: [first, 1, second] }, config);
  if (isPair && isScanVector(name)) {
    refuseShape(tensor, name.endsWith('norm.weight') ? [config.scan!.groups, second] : [first, 1]);
    return normsApart(name, { ...tensor, shape: [first * second] }, config);
  }
  return normsApart(name, { ...tensor, ...(heads !== undefined && { interleavedHeads: heads }) }, config);
}

/** Names that the network has for a tensor under Hugging Face's name, or for its slices. */
export function scanNames(name: string, { scan }: ModelConfig): string[] {
  const [, layer] = NORM.exec(name) ?? [];
  if (layer === undefined || scan === undefined) return [name];
  return Array.from({ length: scan.groups }, (_, group) => layer + scanNorm(group, scan.groups));
}

const NORM = /^(model\.layers\.\d+\.)mamba\.norm\.weight$/;
const isScanVector = (name: string) => /\.mamba\.(A_log|D|norm\.weight)$/.test(name);

/** The weights of a convolution as one vector, and those of a norm as one for each group. */
function normsApart(name: string, tensor: NamedTensor, config: ModelConfig): [string, NamedTensor][] {
  const names = scanNames(name, config);
  if (names.length === 1 || config.scan === undefined) return [[name, asVector(name, tensor, config)]];
  const { heads, headDim, groups } = config.scan;
  const width = (heads * headDim) / groups;
  refuseUnsupportedType(tensor);
  refuseShape(tensor, [heads * headDim]);
  return rowSlices(
    { ...tensor, shape: [groups, width] },
    names.map((one) => [one, 1] as const),
    width,
  ).map(([one, slice]) => [one, { ...slice, shape: [width] }]);
}

/** Of Granite 4, tensors of several matrices; the names are those of transformers 4 and 5. */
const GRANITE = /^model\.layers\.(0|[1-9]\d*)\.(shared_mlp|block_sparse_moe)\.(.*)$/;
const STACKS: Readonly<Record<string, readonly ExpertMatrix[]>> = {
  'input_linear.weight': ['gate', 'up'],
  'output_linear.weight': ['down'],
  'experts.gate_up_proj': ['gate', 'up'],
  'experts.down_proj': ['down'],
};

function graniteTensors(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] | undefined {
  const { architecture, intermediateSize, hiddenSize, numLayers, experts } = config;
  const [, layer, block, part] = (architecture === 'granite4' && GRANITE.exec(name)) || [];
  if (layer === undefined || Number(layer) >= numLayers) return undefined;
  if (block === 'shared_mlp') {
    if (part !== 'input_linear.weight') return undefined;
    refuseUnsupportedType(tensor);
    refuseShape(tensor, [2 * intermediateSize, hiddenSize]);
    const parts = SHARED_MLP.map((one) => [`model.layers.${layer}.${one}.weight`, intermediateSize] as const);
    return rowSlices(tensor, parts, hiddenSize);
  }
  if (experts === undefined) return undefined;
  if (/^router\.(layer\.)?weight$/.test(part!)) return [[routerName(architecture, layer), tensor]];
  const stack = STACKS[part!];
  return stack && expertSlices(tensor, config, layer, stack);
}

/** A matrix of all experts of a layer, as transformers 5 has it in memory. */
const NEMOTRON = /^model\.layers\.(0|[1-9]\d*)\.mlp\.experts\.(up|down)_proj$/;

function nemotronExperts(
  name: string,
  tensor: RawTensor,
  config: ModelConfig,
): [string, NamedTensor][] | undefined {
  const { architecture, experts, numLayers } = config;
  const [, layer, matrix] = (architecture === 'nemotronh' && experts && NEMOTRON.exec(name)) || [];
  if (layer === undefined || Number(layer) >= numLayers) return undefined;
  return expertSlices(tensor, config, layer, [matrix as ExpertMatrix]);
}
