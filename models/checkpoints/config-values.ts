import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { LIMITS } from './config-fields.js';

/** Activations by the names that config.json has for them. */
export const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['silu', 'silu'],
  ['swish', 'silu'],
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['relu2', 'reluSquared'],
]);

export function checkHeads(where: string, numHeads: number, numKvHeads: number, headDim: number): void {
  if (numHeads % numKvHeads !== 0) {
    throw new CheckpointError(
      `${where}: the ${numHeads} attention heads should be a multiple of the ${numKvHeads} key-value heads.`,
    );
  }
  if (headDim % 2 !== 0 || numHeads * headDim > LIMITS.width * 4) {
    throw new CheckpointError(`${where}: ${numHeads} heads of ${headDim} dimensions are not supported.`);
  }
}

/** Token ids of several lists, each once; those beyond the vocabulary can never be drawn and are left out. */
export function eosTokenIds(lists: readonly (readonly number[])[], vocabSize: number): number[] {
  return [...new Set(lists.flat())].filter((id) => id < vocabSize);
}

export function tokenId(id: number | undefined, vocabSize: number): number | null {
  return id === undefined || id >= vocabSize ? null : id;
}
