import type { ExpertsConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';

/** Where an architecture's config.json has its experts, and what transformers takes where it says nothing. */
export interface ExpertFields {
  /** Fields of the number of experts; where there are several, they say the same. */
  count: readonly string[];
  usualCount: number;
  usualUsed: number;
  width: string;
  usualWidth?: number;
  /** Whether shares are made to add up to 1: as norm_topk_prob says, with what it means where it is missing, or always. */
  normalize: 'always' | { usually: boolean };
  /** Field of the width of an expert that all tokens go to; absent: there must be none. */
  shared?: { width: string; usually: number };
}

/** Fields that say how many experts a layer has. */
const COUNTS = ['num_experts', 'num_local_experts', 'n_routed_experts', 'moe_num_experts'];

/** Fields of experts that are computed in another way, each with the values that change nothing. */
const OTHERWISE: readonly (readonly [key: string, harmless: readonly unknown[], expected: string])[] = [
  ['n_shared_experts', [0], 'absent: experts that all tokens go to are not supported'],
  ['num_shared_experts', [0], 'absent: experts that all tokens go to are not supported'],
  ['shared_expert_intermediate_size', [0], 'absent: experts that all tokens go to are not supported'],
  ['n_group', [0, 1], 'absent: groups of experts are not supported'],
  ['routed_scaling_factor', [1], 'absent or 1: no other factor on the sum of the experts is supported'],
  ['scoring_func', ['softmax'], '"softmax": shares of experts by another function are not supported'],
  ['first_k_dense_replace', [0], '0: layers with one MLP beside layers with experts are not supported'],
  ['decoder_sparse_step', [1], '1: layers with one MLP beside layers with experts are not supported'],
];

/** Refuses experts of a model whose architecture has none. */
export function refuseExperts(config: ConfigFields, name: string): void {
  for (const key of [
    ...COUNTS,
    'n_shared_experts',
    'num_shared_experts',
    'shared_expert_intermediate_size',
  ]) {
    const value = config.raw(key);
    if (value !== undefined && value !== 0) throw config.error(key, `absent: ${name} has no experts`);
  }
}

/** The experts of a model whose architecture has them. @throws CheckpointError where they are computed in another way than here */
export function expertsOfHuggingFace(
  config: ConfigFields,
  name: string,
  numLayers: number,
  fields: ExpertFields,
): ExpertsConfig {
  refuseOthers(config, name, fields);
  const [first, ...others] = fields.count.filter((key) => config.raw(key) !== undefined);
  const count = config.integer(first ?? fields.count[0]!, 1, LIMITS.experts, fields.usualCount);
  for (const key of others) {
    if (config.raw(key) !== count) throw config.error(key, `${first}, which is ${count}`);
  }
  checkExperts(config.where, numLayers, count);
  return {
    count,
    used: config.integer('num_experts_per_tok', 1, count, fields.usualUsed),
    width: config.integer(fields.width, 1, LIMITS.width, fields.usualWidth),
    normalize: fields.normalize === 'always' || config.boolean('norm_topk_prob', fields.normalize.usually),
    ...(fields.shared && {
      sharedWidth: config.integer(fields.shared.width, 1, LIMITS.width, fields.shared.usually),
    }),
  };
}

function refuseOthers(config: ConfigFields, name: string, { count, shared }: ExpertFields): void {
  for (const key of COUNTS) {
    const isOther = !count.includes(key) && config.raw(key) !== undefined;
    if (isOther) throw config.error(key, `absent: the experts of ${name} are ${count[0]}`);
  }
  for (const [key, harmless, expected] of OTHERWISE) {
    const value = key === shared?.width ? undefined : config.raw(key);
    if (value !== undefined && !harmless.includes(value)) throw config.error(key, expected);
  }
  const dense = config.raw('mlp_only_layers');
  if (dense !== undefined && !(Array.isArray(dense) && dense.length === 0)) {
    throw config.error(
      'mlp_only_layers',
      'empty: layers with one MLP beside layers with experts are not supported',
    );
  }
}

/** Bounds the size of a plan, which has two weights for each expert of each layer. */
export function checkExperts(where: string, numLayers: number, count: number): void {
  if (numLayers * count <= LIMITS.allExperts) return;
  throw new CheckpointError(
    `${where}: ${numLayers} layers of ${count} experts should have ${LIMITS.allExperts} experts in all at most, found ${numLayers * count}.`,
  );
}
