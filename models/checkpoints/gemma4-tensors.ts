import type { ModelConfig } from '../model-config.js';
import { expertSlices } from './expert-tensors.js';
import type { RawTensor } from './raw-tensor.js';
import type { NamedTensor } from './tensor-layout.js';

const LAYER = /^model\.layers\.(0|[1-9]\d*)\.(.*)$/;

/**
 * Tensors of Gemma 4. The router and the experts of a layer are parts of its mixture here; those of all experts are one tensor in the file:
 *
 *   layers.0.router.scale              ->  layers.0.mixture.router.scale.weight
 *   layers.0.experts.gate_up_proj      ->  layers.0.mixture.experts.E.gate_proj.weight, ...up_proj.weight
 *
 * @throws CheckpointError for another shape, or a type of which no slice can be read
 */
export function gemma4Tensors(name: string, tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const [, layer, own] = LAYER.exec(name) ?? [];
  if (layer === undefined || config.experts === undefined || Number(layer) >= config.numLayers)
    return [[name, tensor]];
  if (own === 'experts.gate_up_proj') return expertSlices(tensor, config, layer, ['gate', 'up']);
  if (own === 'experts.down_proj') return expertSlices(tensor, config, layer, ['down']);
  const inMixture = name.replace(/\.(router|experts)\./, '.mixture.$1.');
  return [[inMixture.replace(/\.router\.scale$/, '$&.weight'), tensor]];
}
