import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Pooling, TOKEN_LAYERS, type TokenLayers } from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import { LIMITS } from './config-fields.js';
import { type RawTensor, refuseShape } from './raw-tensor.js';
import { readSafetensors } from './safetensors.js';

/**
 * Files of layers over the rows of tokens, besides those of the model itself: the weight and bias of each.
 */
export const TOKEN_LAYER_FILES = Object.values(TOKEN_LAYERS).map((name) => `${name}.safetensors`);

const PARTS = ['weight', 'bias'];

/**
 * The layers over rows of tokens that a folder has files of; undefined: none. Only safetensors are read: the .pt files that BGE-M3 is
 * published with are programs of Python's pickle.
 * @throws CheckpointError for a layer of another shape, or one of a model whose embedding is not its first token's row
 */
export function readTokenLayers(
  directory: string,
  hiddenSize: number,
  pooling: Pooling,
): TokenLayers | undefined {
  const vectors = tensorsOf(directory, TOKEN_LAYERS.vectors);
  const weights = tensorsOf(directory, TOKEN_LAYERS.weights);
  const [first] = [...vectors, ...weights];
  if (first === undefined) return undefined;
  if (pooling !== 'cls') {
    throw new CheckpointError(
      `${first.file}: layers over tokens are supported with the pooling cls; this model has ${pooling}.`,
    );
  }
  const width = vectors.find(({ name }) => name.endsWith('.weight'))?.shape[0] ?? null;
  if (width !== null && (width < 1 || width > LIMITS.width)) {
    throw new CheckpointError(
      `${first.file}: the vectors of tokens should have 1 to ${LIMITS.width} values, found ${width}.`,
    );
  }
  for (const [tensors, rows] of [[vectors, width ?? 0] as const, [weights, 1] as const]) {
    for (const tensor of tensors)
      refuseShape(tensor, tensor.name.endsWith('.weight') ? [rows, hiddenSize] : [rows]);
  }
  return { vectors: width, weights: weights.length > 0 };
}

/** The tensors of the layers over tokens, under the names that the network has for them. */
export function tokenLayerTensors(directory: string): RawTensor[] {
  return Object.values(TOKEN_LAYERS).flatMap((layer) => tensorsOf(directory, layer));
}

function tensorsOf(directory: string, layer: string): RawTensor[] {
  const file = join(directory, `${layer}.safetensors`);
  if (!existsSync(file)) return [];
  const tensors = readSafetensors(file);
  const names = tensors.map(({ name }) => name);
  if (names.length !== PARTS.length || !PARTS.every((part) => names.includes(part))) {
    throw new CheckpointError(
      `${file}: should have the tensors ${PARTS.join(' and ')}, found ${names.join(', ') || 'none'}.`,
    );
  }
  return tensors.map((tensor) => ({ ...tensor, name: `${layer}.${tensor.name}` }));
}
