import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { numberOf } from './one-number.js';
import type { RawTensor } from './raw-tensor.js';

/** Name of the tensor of a layer's factor, in safetensors and in a GGUF. */
const nameOf = (layer: number) => `model.layers.${layer}.layer_scalar`;

/** The config with the factor that each layer of Gemma 4 has on its output; where files have none it is 1. */
export function withLayerScales(config: ModelConfig, tensors: ReadonlyMap<string, RawTensor>): ModelConfig {
  if (config.architecture !== 'gemma4') return config;
  const layerScales = Array.from({ length: config.numLayers }, (_, layer) => {
    const tensor = tensors.get(nameOf(layer));
    const scale = tensor === undefined ? 1 : numberOf(tensor);
    if (Number.isFinite(scale)) return scale;
    throw new CheckpointError(
      `${tensor!.file}: tensor ${tensor!.name} should be a finite number, found ${scale}.`,
    );
  });
  return { ...config, layerScales };
}
