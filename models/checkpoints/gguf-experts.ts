import { expertNames } from '../architectures/expert-names.js';
import type { ExpertsConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import { checkExperts } from './experts-config.js';
import type { GgufKeys } from './gguf-keys.js';

/** Width of the MLP beside experts, which Granite 4 has. */
export const SHARED_WIDTH = 'expert_shared_feed_forward_length';

/** Keys of experts that are computed in another way, each with the values that change nothing. */
const OTHERWISE: readonly (readonly [key: string, harmless: readonly number[], expected: string])[] = [
  ['expert_shared_count', [0], '0 (experts that all tokens go to are not supported)'],
  [SHARED_WIDTH, [0], '0 (experts that all tokens go to are not supported)'],
  ['expert_group_count', [0, 1], '0 or 1 (groups of experts are not supported)'],
  ['expert_group_scale', [0, 1], '1 (groups of experts are not supported)'],
  ['experts_per_group', [0], '0 (groups of experts are not supported)'],
  ['expert_latent_length', [0], '0 (experts of a width of their own are not supported)'],
  ['expert_weights_scale', [0, 1], '1 (no other factor on the sum of the experts is supported)'],
  ['expert_gating_func', [0, 1], '1 (softmax: shares of experts by another function are not supported)'],
  ['leading_dense_block_count', [0], '0 (layers with one MLP beside layers with experts are not supported)'],
  [
    'interleave_moe_layer_step',
    [0, 1],
    '1 (layers with one MLP beside layers with experts are not supported)',
  ],
];
/** The same where every layer has experts. */
const IN_EVERY_LAYER: typeof OTHERWISE = [
  ['moe_every_n_layers', [0, 1], '1 (layers with one MLP beside layers with experts are not supported)'],
];

/** Name of nomic-embed v2 in GGUF, whose experts lie in some layers alone. */
const NOMIC = 'nomic-bert-moe';

/** True where layers of a file's architecture may have experts. */
export function mayHaveExperts(keys: GgufKeys, architecture: string): boolean {
  if (architecture === 'granite4') return hasExperts(keys);
  return expertNames(architecture) !== undefined || keys.architecture === NOMIC;
}

/** True where a file says that its layers have experts. */
export function hasExperts(keys: GgufKeys): boolean {
  return (keys.number('expert_count') ?? 0) !== 0;
}

/**
 * The experts of a file whose architecture has them. Their shares add up to 1, or do not for nomic-embed, as llama.cpp has it for these
 * architectures whatever the file says; a file that says otherwise is refused. @throws CheckpointError
 */
export function expertsOfGguf(keys: GgufKeys, architecture: string, numLayers: number): ExpertsConfig {
  const count = keys.integer('expert_count', 1, LIMITS.experts);
  checkExperts(keys.file, numLayers, count);
  const isNomic = keys.architecture === NOMIC;
  for (const [key, harmless, expected] of isNomic ? OTHERWISE : [...OTHERWISE, ...IN_EVERY_LAYER]) {
    const value = architecture === 'granite4' && key === SHARED_WIDTH ? undefined : keys.number(key);
    if (value !== undefined && !harmless.includes(value)) throw keys.error(key, expected, value);
  }
  const norm = keys.boolean('expert_weights_norm');
  if (norm === isNomic) {
    const usual = isNomic ? 'stay those of all experts' : 'add up to 1';
    throw keys.error('expert_weights_norm', `${!isNomic} (the shares of experts ${usual})`, norm);
  }
  const used = keys.integer('expert_used_count', 1, count);
  if (isNomic) {
    const every = keys.integer('moe_every_n_layers', 2, LIMITS.layers);
    const width = keys.integer('feed_forward_length', 1, LIMITS.width);
    return { count, used, width, normalize: false, every, withoutBias: true };
  }
  return { count, used, width: widthOf(keys, architecture, used), normalize: true };
}

/** Files of Mixtral and Granite have no width of the experts beside that of the MLP; where others have none, it is the part of those that are used. */
function widthOf(keys: GgufKeys, architecture: string, used: number): number {
  const whole = keys.number('feed_forward_length') ?? 0;
  const usual = ['mixtral', 'granite4'].includes(architecture) ? whole : Math.floor(whole / used);
  return keys.integer('expert_feed_forward_length', 1, LIMITS.width, usual);
}
