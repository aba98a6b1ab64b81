import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelConfig } from '../../models/model-config.js';
import type { TestTensor } from '../../tools/support/gguf-writer.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { TINY_MODEL_CONFIG } from './tiny-checkpoint.js';

/** The base of the tiny adapters. */
export const TINY_BASE = TINY_MODEL_CONFIG as ModelConfig;

/** adapter_config.json of a tiny adapter, as PEFT writes it. */
export const TINY_ADAPTER_CONFIG = {
  peft_type: 'LORA',
  base_model_name_or_path: 'tiny',
  r: 2,
  lora_alpha: 4,
  target_modules: ['q_proj', 'down_proj'],
  bias: 'none',
  init_lora_weights: true,
  fan_in_fan_out: false,
  modules_to_save: null,
  layers_to_transform: null,
  rank_pattern: {},
  alpha_pattern: {},
  use_rslora: false,
  use_dora: false,
  lora_bias: false,
};

export const Q = 'base_model.model.model.layers.0.self_attn.q_proj';
const DOWN = 'base_model.model.model.layers.1.mlp.down_proj';

/** A tensor of float32; element i is `first` + i / 8. */
export function floats(name: string, shape: number[], first = 0.5): TestTensor {
  const length = shape.reduce((product, dimension) => product * dimension, 1);
  const values = Float32Array.from({ length }, (_, i) => first + i / 8);
  return { name, shape, data: new Uint8Array(values.buffer) };
}

/** Rank 2 on the queries of layer 0 (8 to 8) and on the way down of layer 1 (10 to 8). */
export function tinyAdapterTensors(): TestTensor[] {
  return [
    floats(`${Q}.lora_A.weight`, [2, 8]),
    floats(`${Q}.lora_B.weight`, [8, 2], -1),
    floats(`${DOWN}.lora_A.weight`, [2, 10]),
    floats(`${DOWN}.lora_B.weight`, [8, 2], -1),
  ];
}

/** A folder with adapter_config.json and adapter_model.safetensors. */
export function writeTinyAdapter(
  directory: string,
  change: { config?: object; tensors?: readonly TestTensor[] } = {},
): string {
  mkdirSync(directory, { recursive: true });
  const config = { ...TINY_ADAPTER_CONFIG, ...change.config };
  writeFileSync(join(directory, 'adapter_config.json'), JSON.stringify(config));
  const tensors = change.tensors ?? tinyAdapterTensors();
  writeFileSync(join(directory, 'adapter_model.safetensors'), safetensorsBytes(tensors));
  return directory;
}
