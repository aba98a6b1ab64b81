import type { TypedValue } from '../../support/gguf-writer.js';
import type { PlannedTensor, StoredType } from './model-shapes.js';
import { plannedTensor } from './model-shapes.js';

/** Sizes of a tower of Qwen3-VL. */
export interface TowerShape {
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  /** Pixels of a patch's side, and of the side of the square of positions. */
  patch: number;
  image: number;
  /** Patches of a side of the square that becomes a token. */
  merge: number;
  /** Layers whose rows go to the text model too. */
  levels: readonly number[];
}

/** Texts around and in place of a picture, which the vocabulary has as tokens of their own. */
export const PICTURE_TOKENS = ['<|vision_start|>', '<|image_pad|>', '<|vision_end|>'] as const;

/** Types that the matrices of a tower are stored in. */
export type TowerType = Extract<StoredType, 'BF16' | 'Q8_0'>;

/** Tensors of the tower's GGUF, as llama.cpp's converter names them. */
export function plannedTowerTensors(tower: TowerShape, textWidth: number, type: TowerType): PlannedTensor[] {
  const { hiddenSize, intermediateSize, numLayers, patch, image, merge, levels } = tower;
  const tensors: PlannedTensor[] = [];
  const vector = (name: string, entries: number, value: number) =>
    tensors.push({ ...plannedTensor(name, 'F32', [entries]), value });
  const norm = (name: string, width: number) => {
    vector(`${name}.weight`, width, 1);
    vector(`${name}.bias`, width, 0);
  };
  const layer = (name: string, rows: number, columns: number) => {
    tensors.push(plannedTensor(`${name}.weight`, type, [rows, columns]));
    vector(`${name}.bias`, rows, 0);
  };
  for (const end of ['weight', 'weight.1'])
    tensors.push(plannedTensor(`v.patch_embd.${end}`, 'F32', [hiddenSize, 3, patch, patch]));
  vector('v.patch_embd.bias', hiddenSize, 0);
  tensors.push(plannedTensor('v.position_embd.weight', 'F32', [(image / patch) ** 2, hiddenSize]));
  for (let i = 0; i < numLayers; i++) {
    const own = `v.blk.${i}`;
    norm(`${own}.ln1`, hiddenSize);
    layer(`${own}.attn_qkv`, 3 * hiddenSize, hiddenSize);
    layer(`${own}.attn_out`, hiddenSize, hiddenSize);
    norm(`${own}.ln2`, hiddenSize);
    layer(`${own}.ffn_up`, intermediateSize, hiddenSize);
    layer(`${own}.ffn_down`, hiddenSize, intermediateSize);
  }
  const square = hiddenSize * merge ** 2;
  norm('v.post_ln', hiddenSize);
  layer('mm.0', square, square);
  layer('mm.2', textWidth, square);
  for (const level of levels) {
    norm(`v.deepstack.${level}.norm`, square);
    layer(`v.deepstack.${level}.fc1`, square, square);
    layer(`v.deepstack.${level}.fc2`, textWidth, square);
  }
  return tensors;
}

export function towerMetadata(tower: TowerShape, textWidth: number): Record<string, TypedValue> {
  const number = (value: number): TypedValue => ({ type: 'u32', value });
  const numbers = (value: number): TypedValue => ({ type: 'array', of: 'f32', value: [value, value, value] });
  const isLevel = Array.from({ length: tower.numLayers }, (_, layer) => tower.levels.includes(layer));
  return {
    'general.architecture': { type: 'string', value: 'clip' },
    'general.type': { type: 'string', value: 'mmproj' },
    'clip.has_vision_encoder': { type: 'bool', value: true },
    'clip.projector_type': { type: 'string', value: 'qwen3vl_merger' },
    'clip.use_gelu': { type: 'bool', value: true },
    'clip.vision.projection_dim': number(textWidth),
    'clip.vision.image_size': number(tower.image),
    'clip.vision.patch_size': number(tower.patch),
    'clip.vision.embedding_length': number(tower.hiddenSize),
    'clip.vision.feed_forward_length': number(tower.intermediateSize),
    'clip.vision.block_count': number(tower.numLayers),
    'clip.vision.attention.head_count': number(tower.numHeads),
    'clip.vision.attention.layer_norm_epsilon': { type: 'f32', value: 1e-6 },
    'clip.vision.spatial_merge_size': number(tower.merge),
    'clip.vision.image_mean': numbers(0.5),
    'clip.vision.image_std': numbers(0.5),
    'clip.vision.is_deepstack_layers': { type: 'array', of: 'bool', value: isLevel },
  };
}
