import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ExpertMatrix, expertSlices, expertTensorName, stackedNames } from './expert-tensors.js';
import type { GgufHeader } from './gguf.js';
import { tokenRows } from './gguf-encoders.js';
import { huggingFaceTensorName, interleavedHeads } from './gguf-tensor-names.js';
import { rowOf } from './head-tensors.js';
import type { RawTensor } from './raw-tensor.js';
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
  if (stack !== null) return expertSlices(tensor, config, stack.layer, [stack.matrix]);
  const rows = tokenRows(tensor.name, config);
  if (rows !== null) return rows.map((row, i) => [row, rowOf(tensor, i)]);
  const name = nameOf(tensor.name, config);
  if (config.ownHeadNorms) return [[name, inNetworkOrder(name, tensor, config)]];
  const heads = interleavedHeads(name, config);
  return [[name, { ...tensor, ...(heads === undefined ? {} : { interleavedHeads: heads }) }]];
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
  const stack = stackOf(name, config);
  return stack === null ? [nameOf(name, config)] : stackedNames(config, stack.layer, [stack.matrix]);
}

/** The layer and the matrix of a tensor that has a matrix of all experts; null for any other. */
function stackOf(
  name: string,
  { experts, numLayers }: ModelConfig,
): { layer: string; matrix: ExpertMatrix } | null {
  const match = /^blk\.(0|[1-9]\d*)\.ffn_(gate|up|down)_exps\.weight$/.exec(name);
  if (match === null || experts === undefined || Number(match[1]) >= numLayers) return null;
  return { layer: match[1]!, matrix: match[2] as ExpertMatrix };
}

/** Files of Mixtral had a tensor for each expert at first: `blk.0.ffn_gate.7.weight`. */
function nameOf(name: string, { architecture }: ModelConfig): string {
  const match = /^blk\.(0|[1-9]\d*)\.ffn_(gate|up|down)\.(0|[1-9]\d*)\.weight$/.exec(name);
  const [, layer, matrix, expert] = match ?? [];
  const own = match && expertTensorName(architecture, layer!, expert!, matrix as ExpertMatrix);
  return own ?? huggingFaceTensorName(name, architecture);
}
