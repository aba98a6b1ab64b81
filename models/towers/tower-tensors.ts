import { CheckpointError } from '../checkpoints/checkpoint.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from '../checkpoints/raw-tensor.js';
import { rowSlices } from '../checkpoints/row-slices.js';
import type { NamedTensor } from '../checkpoints/tensor-layout.js';
import { gemma4TowerTensors } from './gemma4-tensors.js';
import type { TowerConfig } from './tower-config.js';

/** SigLIP's queries, keys and values in one tensor. */
const OF_PROBE = /^(tower\.head\.attention\.)in_proj_(weight|bias)$/;

const MERGING_LAYER = 'connector.patch_merger.merging_layer.weight';

/**
 * What the network has of a tensor of transformers' files.
 * @param name its name, with `tower.` and `connector.` in place of the beginnings that transformers has written
 */
export function networkTensors(
  name: string,
  tensor: NamedTensor,
  config: TowerConfig,
): [string, NamedTensor][] {
  if (config.kind === 'gemma4') return gemma4TowerTensors(name, tensor, config);
  const [, probe, end] = OF_PROBE.exec(name) ?? [];
  if (probe !== undefined) return threeOf(tensor, probe, end as 'weight' | 'bias');
  return [convertedOne(name, tensor, config)];
}

/** Queries, keys and values of a tensor that has the rows of all three, one after the other. */
function threeOf(tensor: NamedTensor, name: string, end: 'weight' | 'bias'): [string, NamedTensor][] {
  refuseUnsupportedType(tensor);
  const [rows = 0, columns = 1] = tensor.shape;
  const parts = ['q', 'k', 'v'].map((part) => [`${name}${part}_proj.${end}`, rows / 3] as const);
  if (rows % 3 !== 0) refuseShape(tensor, [3 * Math.ceil(rows / 3), columns]);
  const slices = rowSlices(tensor, parts, columns);
  return end === 'weight' ? slices : slices.map(([own, slice]) => [own, { ...slice, shape: [rows / 3] }]);
}

function convertedOne(name: string, tensor: NamedTensor, config: TowerConfig): [string, NamedTensor] {
  switch (name) {
    // Gemma 3's linear layer, stored as [in, out], and its norm, which multiplies by 1 + weight.
    case 'connector.mm_input_projection_weight':
      return ['connector.mm_input_projection.weight', { ...tensor, transposed: true }];
    case 'connector.mm_soft_emb_norm.weight':
      return [name, { ...tensor, addend: 1 }];
    // Mistral 3's layer over the patches of a square has the columns of all patches by turns.
    case MERGING_LAYER:
      return [name, { ...tensor, interleavedColumns: squareOf(tensor, config) }];
    // Rows of a table of types.
    case 'tower.embeddings.class_embedding':
    case 'tower.embeddings.patch_embeddings.projection.bias':
      return [name, { ...tensor, shape: [1, ...tensor.shape] }];
    case 'tower.embeddings.cls_token':
      return [name, { ...tensor, shape: ofOneMatrix(tensor) }];
    case 'tower.embeddings.position_embeddings':
      return ['tower.embeddings.position_embedding.weight', { ...tensor, shape: ofOneMatrix(tensor) }];
    default:
      return [name, asMatrix(tensor)];
  }
}

/** The shape of the one matrix that a tensor [1, rows, columns] has. */
function ofOneMatrix({ shape }: RawTensor): number[] {
  return shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
}

/** Patches of a square. @throws CheckpointError where the layer over them is quantised */
function squareOf({ file, name, quantized }: RawTensor, { merge }: TowerConfig): number {
  if (quantized === undefined) return merge ** 2;
  throw new CheckpointError(`${file}: tensor ${name} is quantised, which is not supported for it.`);
}

/** A convolution over patches that do not overlap is a matrix over the numbers of a patch. */
function asMatrix(tensor: NamedTensor): NamedTensor {
  const [rows = 1, ...others] = tensor.shape;
  if (others.length < 2) return tensor;
  return { ...tensor, shape: [rows, others.reduce((product, size) => product * size, 1)] };
}
