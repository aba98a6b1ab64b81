import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';

/** Activations by the names that config.json has for them. */
export const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['silu', 'silu'],
  ['swish', 'silu'],
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['relu2', 'reluSquared'],
]);

/** The activation that a field of an encoder's config names; gelu where there is no such field. @param known activations by their names */
export function activationOf<T>(config: ConfigFields, key: string, known: ReadonlyMap<unknown, T>): T {
  const activation = known.get(config.raw(key) ?? 'gelu');
  if (!activation) throw config.error(key, `one of ${[...known.keys()].join(', ')}`);
  return activation;
}

/** Width and heads of an encoder, whose heads share the width out. @param key name of a field in this config */
export function widthAndHeads(config: ConfigFields, key: (name: string) => string = (name) => name) {
  const hiddenSize = config.integer(key('hidden_size'), 1, LIMITS.width);
  const numHeads = config.integer(key('num_attention_heads'), 1, LIMITS.heads);
  if (hiddenSize % numHeads !== 0) {
    throw config.error(key('hidden_size'), `a multiple of the ${numHeads} attention heads`);
  }
  return { hiddenSize, numHeads, headDim: hiddenSize / numHeads };
}

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

/** The tokens at which texts begin and end, and that fill up. @param generation generation_config.json; null: there is none */
export function specialTokens(
  config: ConfigFields,
  generation: ConfigFields | null | undefined,
  vocabSize: number,
): Pick<ModelConfig, 'bosTokenId' | 'eosTokenIds' | 'padTokenId'> {
  const ends = [generation?.tokenIds('eos_token_id') ?? [], config.tokenIds('eos_token_id')];
  return {
    bosTokenId: tokenId(config.tokenIds('bos_token_id')[0], vocabSize),
    eosTokenIds: eosTokenIds(ends, vocabSize),
    padTokenId: tokenId(config.tokenIds('pad_token_id')[0], vocabSize),
  };
}

/** Token ids of several lists, each once; those beyond the vocabulary can never be drawn and are left out. */
export function eosTokenIds(lists: readonly (readonly number[])[], vocabSize: number): number[] {
  return [...new Set(lists.flat())].filter((id) => id < vocabSize);
}

export function tokenId(id: number | undefined, vocabSize: number): number | null {
  return id === undefined || id >= vocabSize ? null : id;
}
