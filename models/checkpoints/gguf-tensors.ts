import { expertNames } from '../architectures/expert-names.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import {
  biasSlices,
  type ExpertMatrix,
  expertSlices,
  expertTensorName,
  stackedNames,
} from './expert-tensors.js';
import type { GgufHeader } from './gguf.js';
import { tokenRows } from './gguf-encoders.js';
import { huggingFaceTensorName, interleavedHeads } from './gguf-tensor-names.js';
import { rowOf } from './head-tensors.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import { hasScanNames, scanGgufTensors, scanNames } from './scan-tensors.js';
import { stateGgufTensors, stateNames } from './state-tensors.js';
import { inNetworkOrder, type NamedTensor } from './tensor-layout.js';
import type { UnreadTensor } from './unread-tensors.js';

/** GGUF's tensors under Hugging Face's names, matrices of experts by themselves. */
export function namedGgufTensors(header: GgufHeader, config: ModelConfig): Map<string, NamedTensor> {
  const tensors = new Map<string, NamedTensor>();
  for (const tensor of header.tensors) {
    for (const [name, named] of renamed(tensor, config)) {
      if (tensors.has(name)) throw new CheckpointError(`${header.file}: tensor ${name} is there twice.`);
      tensors.set(name, named);
    }
  }
  return tensors;
}

function renamed(tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const stack = stackOf(tensor.name, config);
  if (stack !== null) return ofStack(tensor, config, stack);
  const rows = tokenRows(tensor.name, config);
  if (rows !== null) return rows.map((row, i) => [row, rowOf(tensor, i)]);
  const parts = projectionsOf(tensor.name, config);
  if (parts !== null) return attentionSlices(tensor, config, parts);
  const name = nameOf(tensor.name, config);
  if (isSharedGate(name, config) && tensor.shape.length === 1)
    return [[name, { ...tensor, shape: [1, ...tensor.shape] }]];
  if (hasScanNames(config)) return scanGgufTensors(name, tensor, config);
  if (config.attendingLayers !== undefined) return stateGgufTensors(name, tensor, config);
  if (config.ownHeadNorms) return [[name, inNetworkOrder(name, tensor, config)]];
  const heads = interleavedHeads(name, config);
  return [[name, { ...tensor, ...(heads === undefined ? {} : { interleavedHeads: heads }) }]];
}

/** Whether it is the gate of the MLP that all tokens go to, a matrix of one row, which files have as a vector. */
function isSharedGate(name: string, { architecture }: ModelConfig): boolean {
  const gate = expertNames(architecture)?.shared?.gate;
  return gate !== undefined && name.endsWith(`.${gate}.weight`);
}

/** Tensors of a GGUF that are not read. */
export function unreadGgufTensors(
  { file, tensors }: GgufHeader,
  config: ModelConfig,
  read: ReadonlyMap<string, unknown>,
): UnreadTensor[] {
  return tensors
    .filter(({ name }) => !networkNames(name, config).every((one) => read.has(one)))
    .map(({ name }) => ({ file, name, own: name }));
}

/** Names that the network has for a tensor of the file, or for its slices. */
function networkNames(name: string, config: ModelConfig): string[] {
  const rows = tokenRows(name, config);
  if (rows !== null) return rows;
  const parts = projectionsOf(name, config);
  if (parts !== null) return parts;
  const stack = stackOf(name, config);
  if (stack !== null) return stackedNames(config, stack.layer, stack.matrices, stack.end);
  const own = nameOf(name, config);
  if (hasScanNames(config)) return scanNames(own, config);
  return config.attendingLayers === undefined ? [own] : stateNames(own, config);
}

/** A tensor that has these matrices of all experts of a layer, of the model or its head, or their biases. */
interface Stack {
  layer: string;
  matrices: ExpertMatrix[];
  end: 'weight' | 'bias';
}

/** Null for a tensor of another kind. */
function stackOf(name: string, { experts, numLayers, draftHead }: ModelConfig): Stack | null {
  const match = /^blk\.(0|[1-9]\d*)\.ffn_(gate|up|down|gate_up)_exps\.(weight|bias)$/.exec(name);
  const layers = numLayers + (draftHead ? 1 : 0);
  if (match === null || experts === undefined || Number(match[1]) >= layers) return null;
  const matrices = match[2]!.split('_') as ExpertMatrix[];
  const end = match[3] as Stack['end'];
  return end === 'bias' && (!experts.biased || matrices.length > 1)
    ? null
    : { layer: match[1]!, matrices, end };
}

function ofStack(
  tensor: RawTensor,
  config: ModelConfig,
  { layer, matrices, end }: Stack,
): [string, NamedTensor][] {
  if (end === 'weight') return expertSlices(tensor, config, layer, matrices);
  const [matrix] = matrices;
  const rows = matrix === 'down' ? config.hiddenSize : config.experts!.width;
  return biasSlices(tensor, config, layer, matrix!, rows);
}

/** Names of queries, keys and values where one tensor has the rows of all three, as files of GLM-4's first code do; null for any other. */
function projectionsOf(name: string, { architecture, numLayers }: ModelConfig): string[] | null {
  const match = architecture === 'glm' ? /^blk\.(0|[1-9]\d*)\.attn_qkv\.(weight|bias)$/.exec(name) : null;
  if (match === null || Number(match[1]) >= numLayers) return null;
  return ['q', 'k', 'v'].map((one) => `model.layers.${match[1]}.self_attn.${one}_proj.${match[2]}`);
}

/** The rows of `names`, which lie one after the other in a tensor. */
function attentionSlices(
  tensor: RawTensor,
  config: ModelConfig,
  names: readonly string[],
): [string, NamedTensor][] {
  const { hiddenSize, headDim, numHeads, numKvHeads } = config;
  const heads = [numHeads, numKvHeads, numKvHeads];
  const [all, rest] = [
    (numHeads + 2 * numKvHeads) * headDim,
    tensor.name.endsWith('bias') ? [] : [hiddenSize],
  ];
  refuseUnsupportedType(tensor);
  refuseShape(tensor, [all, ...rest]);
  const rowBytes = tensor.byteLength! / all;
  let offset = tensor.offset;
  return names.map((name, i) => {
    const rows = heads[i]! * headDim;
    const slice = { ...tensor, shape: [rows, ...rest], offset, byteLength: rows * rowBytes };
    offset += slice.byteLength;
    const interleaved = interleavedHeads(name, config);
    return [name, { ...slice, ...(interleaved === undefined ? {} : { interleavedHeads: interleaved }) }];
  });
}

/**
 * GGUF's names of what a head that guesses tokens has besides its layer, which follows the model's layers.
 */
const IN_HEAD: Readonly<Record<string, string>> = {
  eh_proj: 'fc',
  enorm: 'pre_fc_norm_embedding',
  hnorm: 'pre_fc_norm_hidden',
  shared_head_norm: 'norm',
};

/** The network's name of a tensor of the head; undefined for any other, and where the engine has none. */
function nameInHead(name: string, { draftHead, numLayers }: ModelConfig): string | undefined {
  const [, layer, part] = /^blk\.(0|[1-9]\d*)\.nextn\.(\w+)\.weight$/.exec(name) ?? [];
  const own = draftHead && Number(layer) === numLayers ? IN_HEAD[part!] : undefined;
  return own && `mtp.${own}.weight`;
}

/** Files of Mixtral had a tensor for each expert at first: `blk.0.ffn_gate.7.weight`. */
function nameOf(name: string, config: ModelConfig): string {
  const { architecture } = config;
  const match = /^blk\.(0|[1-9]\d*)\.ffn_(gate|up|down)\.(0|[1-9]\d*)\.weight$/.exec(name);
  const [, layer, matrix, expert] = match ?? [];
  const own = match && expertTensorName(architecture, layer!, expert!, matrix as ExpertMatrix);
  return own ?? nameInHead(name, config) ?? huggingFaceTensorName(name, architecture);
}
