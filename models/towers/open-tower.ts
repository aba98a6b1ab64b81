import { type Checkpoint, CheckpointError, type TensorLocation } from '../checkpoints/checkpoint.js';
import { findModelFiles, type ModelFiles } from '../checkpoints/model-files.js';
import { checkedTensors, configJson } from '../checkpoints/open-checkpoint.js';
import { quantizationOf } from '../checkpoints/quantized/quantization-config.js';
import { readQuantizationFile } from '../checkpoints/quantized/quantization-file.js';
import { quantizedTensors } from '../checkpoints/quantized/quantized-tensors.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from '../checkpoints/raw-tensor.js';
import { rowSlices } from '../checkpoints/row-slices.js';
import { readSafetensorsDirectory } from '../checkpoints/safetensors-directory.js';
import type { NamedTensor } from '../checkpoints/tensor-layout.js';
import { unwrapConfig } from '../checkpoints/wrappers.js';
import { readPictureFiles } from '../images/picture-files.js';
import type { PictureFiles } from '../images/preprocess/picture-preprocessor.js';
import { gemma4TowerTensors, readClips } from './gemma4-tensors.js';
import { readGgufTower, type TextCheckpoint } from './gguf/open-gguf-tower.js';
import { planTower } from './index.js';
import { readTower, twoTowerModel } from './read-tower.js';
import type { TowerConfig } from './tower-config.js';

/** The part of a checkpoint that sees: opened and checked, with no weights read yet. */
export interface TowerCheckpoint {
  format: Checkpoint['format'];
  config: TowerConfig;
  tensors: Map<string, TensorLocation>;
  /** How its pictures are prepared; null: the model's folder does not say. */
  pictures: PictureFiles | null;
}

/**
 * Opens the part of a model that sees. null: the model reads texts alone.
 *
 * @param text its text model; of no bearing where pictures and texts become embeddings
 * @throws CheckpointError for a tower that is not supported, or is not whole
 */
export function openTower(text: TextCheckpoint): TowerCheckpoint | null {
  const files = findModelFiles(text.path);
  if (files.format === 'gguf') return openGguf(files, text);
  const [file, fields] = configJson(files);
  const model = unwrapConfig(file, fields).wrapper ?? twoTowerModel(fields);
  if (model === null) return null;
  const read = readTower(file, model, fields, text.config.hiddenSize);
  const method = quantizationOf(file, fields, true, readQuantizationFile(files.directory));
  const stored = readSafetensorsDirectory(files.directory);
  const named = namedTensors(method === null ? stored : quantizedTensors(stored, method), read);
  const config = read.clips === undefined ? read : { ...read, clips: readClips(named, read.numLayers) };
  const tensors = checkedTensors(named, planTower(config), files);
  return { format: files.format, config, tensors, pictures: readPictureFiles(text.path) };
}

function openGguf(files: ModelFiles, text: TextCheckpoint): TowerCheckpoint | null {
  const read = readGgufTower(text);
  if (read === null) return null;
  const { file, config, tensors, pictures } = read;
  const checked = checkedTensors(tensors, planTower(config), { ...files, weights: [file] });
  return { format: 'gguf', config, tensors: checked, pictures };
}

/** Beginnings of the names of a tower's tensors and of a connector's, in all layouts that transformers has written. */
const TOWER = /^(?:model\.)?(?:vision_tower|vision_model|visual)\.(?:vision_model\.)?/;
const CONNECTOR =
  /^(?:model\.)?(?:(?:connector|multi_modal_projector|embed_vision)\.|(?=visual_projection\.))/;
/** SigLIP's queries, keys and values in one tensor. */
const OF_PROBE = /^(tower\.head\.attention\.)in_proj_(weight|bias)$/;

/** Whether a part of the files, such as "model.visual", is the one that sees, or what leads from it into the text model. */
export const isOfTower = (part: string): boolean => TOWER.test(`${part}.`) || CONNECTOR.test(`${part}.`);

/** A tower's tensors under the network's names. */
function namedTensors(tensors: readonly RawTensor[], config: TowerConfig): Map<string, NamedTensor> {
  const named = new Map<string, NamedTensor>();
  for (const tensor of tensors) {
    const name = tensor.name.replace(TOWER, 'tower.').replace(CONNECTOR, 'connector.');
    if (name === tensor.name) continue;
    const all =
      config.kind === 'gemma4' ? gemma4TowerTensors(name, tensor, config) : converted(name, tensor, config);
    for (const [own, one] of all) {
      if (named.has(own)) throw new CheckpointError(`${tensor.file}: tensor ${own} is there twice.`);
      named.set(own, one);
    }
  }
  return named;
}

const MERGING_LAYER = 'connector.patch_merger.merging_layer.weight';

function converted(name: string, tensor: RawTensor, config: TowerConfig): [string, NamedTensor][] {
  const [, probe, end] = OF_PROBE.exec(name) ?? [];
  if (probe !== undefined) return threeOf(tensor, probe, end as 'weight' | 'bias');
  return [convertedOne(name, tensor, config)];
}

/** Queries, keys and values of a tensor that has the rows of all three, one after the other. */
function threeOf(tensor: RawTensor, name: string, end: 'weight' | 'bias'): [string, NamedTensor][] {
  refuseUnsupportedType(tensor);
  const [rows = 0, columns = 1] = tensor.shape;
  const parts = ['q', 'k', 'v'].map((part) => [`${name}${part}_proj.${end}`, rows / 3] as const);
  if (rows % 3 !== 0) refuseShape(tensor, [3 * Math.ceil(rows / 3), columns]);
  const slices = rowSlices(tensor, parts, columns);
  return end === 'weight' ? slices : slices.map(([own, slice]) => [own, { ...slice, shape: [rows / 3] }]);
}

function convertedOne(name: string, tensor: RawTensor, config: TowerConfig): [string, NamedTensor] {
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
function asMatrix(tensor: RawTensor): RawTensor {
  const [rows = 1, ...others] = tensor.shape;
  if (others.length < 2) return tensor;
  return { ...tensor, shape: [rows, others.reduce((product, size) => product * size, 1)] };
}
