import type { AdapterLimits, AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { openAdapter as open } from '../../models/adapters/open-adapter.js';
import type { ModelConfig } from '../../models/model-config.js';
import { checkOpenAdapter } from './options/adapter-options.js';

/**
 * Reads a LoRA adapter, for the field `adapter` of a request to an InProcessHost: a folder of PEFT, a GGUF file of llama.cpp, or a
 * folder with one such file and no safetensors.
 * @param config of the base model: `openEngine(directory).manifest.config`
 * @param limits `maxRank`, the greatest rank that the engine takes, and `maxBytes`
 * @throws ParameterError for an invalid argument; CheckpointError for files that are no adapter of the model
 */
export function openAdapter(path: string, config: ModelConfig, limits: AdapterLimits): AdapterWeights {
  checkOpenAdapter(path, config, limits);
  return open(path, config, limits);
}
