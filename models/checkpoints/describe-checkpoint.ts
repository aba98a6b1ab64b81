import type { ModelConfig } from '../model-config.js';
import { openCheckpoint } from './open-checkpoint.js';

/** What `skein info` says of a published model. */
export interface CheckpointDescription {
  path: string;
  format: 'safetensors' | 'gguf';
  config: ModelConfig;
  /** Elements of all tensors that the network uses. */
  parameters: number;
  /** Bytes that they take in the checkpoint. */
  byteLength: number;
  /** Number of tensors of each storage type. */
  types: Record<string, number>;
  hasChatTemplate: boolean;
}

/** Opens and checks a model and sums it up. Throws a CheckpointError where it is not usable. */
export function describeCheckpoint(path: string): CheckpointDescription {
  const { format, config, tensors, tokenizer } = openCheckpoint(path);
  const types: Record<string, number> = {};
  let parameters = 0;
  let byteLength = 0;
  for (const tensor of tensors.values()) {
    types[tensor.type] = (types[tensor.type] ?? 0) + 1;
    parameters += tensor.shape.reduce((product, dimension) => product * dimension, 1);
    byteLength += tensor.byteLength;
  }
  return {
    path,
    format,
    config,
    parameters,
    byteLength,
    types,
    hasChatTemplate: tokenizer.chatTemplate !== null,
  };
}
