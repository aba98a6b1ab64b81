import { type Checkpoint, CheckpointError, type TensorLocation } from '../checkpoints/checkpoint.js';
import { findModelFiles, type ModelFiles } from '../checkpoints/model-files.js';
import { checkedTensors, configJson } from '../checkpoints/open-checkpoint.js';
import { quantizationOf } from '../checkpoints/quantized/quantization-config.js';
import { readQuantizationFile } from '../checkpoints/quantized/quantization-file.js';
import { quantizedTensors } from '../checkpoints/quantized/quantized-tensors.js';
import type { RawTensor } from '../checkpoints/raw-tensor.js';
import { readSafetensorsDirectory } from '../checkpoints/safetensors-directory.js';
import type { NamedTensor } from '../checkpoints/tensor-layout.js';
import { unwrapConfig } from '../checkpoints/wrappers.js';
import { readPictureFiles } from '../images/picture-files.js';
import type { PictureFiles } from '../images/preprocess/picture-preprocessor.js';
import { readClips } from './gemma4-tensors.js';
import { readGgufTower, type TextCheckpoint } from './gguf/open-gguf-tower.js';
import { planTower } from './index.js';
import { readTower, twoTowerModel } from './read-tower.js';
import type { TowerConfig } from './tower-config.js';
import { networkTensors } from './tower-tensors.js';

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
/** Whether a part of the files, such as "model.visual", is the one that sees, or what leads from it into the text model. */
export const isOfTower = (part: string): boolean => TOWER.test(`${part}.`) || CONNECTOR.test(`${part}.`);

/** A tower's tensors under the network's names. */
function namedTensors(tensors: readonly RawTensor[], config: TowerConfig): Map<string, NamedTensor> {
  const named = new Map<string, NamedTensor>();
  for (const tensor of tensors) {
    const name = tensor.name.replace(TOWER, 'tower.').replace(CONNECTOR, 'connector.');
    if (name === tensor.name) continue;
    for (const [own, one] of networkTensors(name, tensor, config)) {
      if (named.has(own)) throw new CheckpointError(`${tensor.file}: tensor ${own} is there twice.`);
      named.set(own, one);
    }
  }
  return named;
}
