import {
  type ExpertGroups,
  expertsInReach,
  MAX_EXPERT_GROUPS,
  SPARSE_USED,
} from '../../network/expert-rule.js';
import type { ClampedSwiglu } from '../../network/plan.js';
import type { ExpertsConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { type DenseLayers, layersWithExperts } from './expert-layers.js';
import { STACKED_FIELD } from './wrappers.js';

/** Where an architecture's config.json has its experts, and what transformers takes where it says nothing. */
export interface ExpertFields {
  /** Fields of the number of experts; where there are several, they say the same. */
  count: readonly string[];
  usualCount: number;
  /** Field of how many a token goes to; absent: num_experts_per_tok. */
  used?: string;
  usualUsed: number;
  width: string;
  usualWidth?: number;
  /** Whether shares are made to add up to 1: as norm_topk_prob says, with what it means where it is missing, always or never. */
  normalize: 'always' | 'never' | { usually: boolean };
  /**
   * Field of the width of an MLP that all tokens go to, or of the number of experts whose width it has; absent: there must be none.
   */
  shared?: { width: string; usually: number } | { experts: string; usually: number };
  /** Layers without experts; absent: there must be none. */
  dense?: DenseLayers;
  /** Absent: softmax. */
  scoring?: 'sigmoid';
  /** Two experts are chosen by sparsemixer, with router_jitter_noise, or this where a file does not say. */
  sparseJitter?: number;
  /** Whether experts have a bias for the choice alone, or the field that says so. Absent: none have. */
  choiceBias?: true | string;
  /** Each expert has a factor on its shares. */
  shareScales?: true;
  /**
   * n_group and topk_group are read, and a group counts by its best 1 or 2 experts; absent: all experts must
   * be of one group.
   */
  groups?: { top: 1 | 2 };
  /** routed_scaling_factor is read; absent: it must be 1. */
  hasFactor?: true;
  sumEpsilon?: number;
  /** Scores and products of experts have biases. */
  biased?: true;
  /** swiglu_limit and swiglu_alpha are read, by which gate and up are clamped; absent: there must be none. */
  clamped?: ClampedSwiglu;
  /** Files have gate and up of each expert in one matrix. */
  stacked?: true;
  /** Fields that `read` of the family reads. */
  besides?: readonly string[];
}

/** Fields that say how many experts a layer has. */
const COUNTS = ['num_experts', 'num_local_experts', 'n_routed_experts', 'moe_num_experts'];

/** Fields of experts that are computed in another way where a family does not read them, each with the values that change nothing. */
const OTHERWISE: readonly (readonly [key: string, harmless: readonly unknown[], expected: string])[] = [
  ['n_shared_experts', [0], 'absent: experts that all tokens go to are not supported'],
  ['num_shared_experts', [0], 'absent: experts that all tokens go to are not supported'],
  ['shared_expert_intermediate_size', [0], 'absent: experts that all tokens go to are not supported'],
  ['n_group', [0, 1], 'absent: groups of experts are not supported'],
  ['routed_scaling_factor', [1], 'absent or 1: no other factor on the sum of the experts is supported'],
  ['swiglu_limit', [], 'absent: experts whose gates are clamped are not supported'],
  [
    'first_k_dense_replace',
    [0],
    '0: layers with one MLP together with layers with experts are not supported',
  ],
  ['num_dense_layers', [0], '0: layers with one MLP together with layers with experts are not supported'],
  ['decoder_sparse_step', [1], '1: layers with one MLP together with layers with experts are not supported'],
];

/** Those that a family reads. */
function fieldsRead({ shared, dense, groups, hasFactor, clamped, besides = [] }: ExpertFields): Set<string> {
  const isShared = shared !== undefined;
  return new Set([
    ...(isShared ? ['width' in shared ? shared.width : shared.experts] : []),
    ...(dense === 'bySteps' ? ['decoder_sparse_step', 'mlp_only_layers'] : dense ? [dense.first] : []),
    ...(groups ? ['n_group'] : []),
    ...(hasFactor ? ['routed_scaling_factor'] : []),
    ...(clamped ? ['swiglu_limit'] : []),
    ...besides,
  ]);
}

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
  const leastCount = fields.sparseJitter === undefined ? 1 : SPARSE_USED;
  const count = config.integer(first ?? fields.count[0]!, leastCount, LIMITS.experts, fields.usualCount);
  for (const key of others) {
    if (config.raw(key) !== count) throw config.error(key, `${first}, which is ${count}`);
  }
  checkExperts(config.where, numLayers, count);
  const { normalize: ways } = fields;
  const normalize =
    typeof ways === 'string' ? ways === 'always' : config.boolean('norm_topk_prob', ways.usually);
  const groups = fields.groups && groupsOf(config, count, fields.groups);
  const width = config.integer(fields.width, 1, LIMITS.width, fields.usualWidth);
  const layers = layersWithExperts(config, numLayers, fields.dense);
  const sharedWidth = fields.shared && sharedWidthOf(config, fields.shared, width);
  const [least, most] =
    fields.sparseJitter === undefined ? [1, expertsInReach(count, groups)] : [SPARSE_USED, SPARSE_USED];
  return {
    count,
    used: config.integer(fields.used ?? 'num_experts_per_tok', least, most, fields.usualUsed),
    width,
    normalize,
    ...(fields.scoring && { scoring: fields.scoring }),
    ...(fields.sparseJitter !== undefined && sparseRule(config, fields.sparseJitter)),
    ...(hasChoiceBias(config, fields) && { choiceBias: true }),
    ...(fields.shareScales && { shareScales: true }),
    ...(groups && { groups }),
    ...factorOf(config, fields),
    ...(normalize && fields.sumEpsilon !== undefined && { sumEpsilon: fields.sumEpsilon }),
    ...(sharedWidth !== undefined && { sharedWidth }),
    ...(fields.biased && { biased: true }),
    ...(fields.clamped && { clamped: clampOf(config, fields.clamped) }),
    ...((fields.stacked || config.boolean(STACKED_FIELD, false)) && { stacked: true }),
    ...(layers && { layers }),
  };
}

function sparseRule(config: ConfigFields, usually: number): Pick<ExpertsConfig, 'scoring' | 'jitter'> {
  const key = 'router_jitter_noise';
  const jitter = config.raw(key) === 0 ? 0 : config.positive(key, usually);
  if (jitter > 1) throw config.error(key, 'a number from 0 to 1');
  return { scoring: 'sparsemixer', jitter };
}

function clampOf(config: ConfigFields, usual: ClampedSwiglu): ClampedSwiglu {
  const alpha = config.positive('swiglu_alpha', usual.alpha);
  const limit = config.positive('swiglu_limit', usual.limit);
  // Kernels compute both in float32.
  if (!Number.isFinite(Math.fround(limit))) throw config.error('swiglu_limit', 'a number that float32 has');
  if (!Number.isFinite(Math.fround(Math.max(alpha, alpha * limit))))
    throw config.error('swiglu_alpha', `a number whose product with the limit ${limit} float32 has`);
  return { alpha, limit };
}

/** Groups of experts; undefined: all are of one. */
function groupsOf(
  config: ConfigFields,
  count: number,
  { top }: NonNullable<ExpertFields['groups']>,
): ExpertGroups | undefined {
  const groups = config.integer('n_group', 1, MAX_EXPERT_GROUPS, 1);
  const used = config.integer('topk_group', 1, groups, 1);
  if (groups === 1) return undefined;
  if (count % groups !== 0 || count / groups < top)
    throw config.error(
      'n_group',
      `a number that parts the ${count} experts into equal groups of at least ${top}`,
    );
  return { count: groups, used, top };
}

function sharedWidthOf(
  config: ConfigFields,
  shared: NonNullable<ExpertFields['shared']>,
  width: number,
): number {
  if ('width' in shared) return config.integer(shared.width, 1, LIMITS.width, shared.usually);
  return width * config.integer(shared.experts, 1, Math.floor(LIMITS.width / width), shared.usually);
}

const hasChoiceBias = (config: ConfigFields, { choiceBias }: ExpertFields): boolean =>
  choiceBias === true || (choiceBias !== undefined && config.boolean(choiceBias, true));

function factorOf(config: ConfigFields, { hasFactor }: ExpertFields): { factor?: number } {
  const factor = hasFactor ? config.positive('routed_scaling_factor', 1) : 1;
  return factor === 1 ? {} : { factor };
}

function refuseOthers(config: ConfigFields, name: string, fields: ExpertFields): void {
  for (const key of COUNTS) {
    const isOther = !fields.count.includes(key) && config.raw(key) !== undefined;
    if (isOther) throw config.error(key, `absent: the experts of ${name} are ${fields.count[0]}`);
  }
  const read = fieldsRead(fields);
  for (const [key, harmless, expected] of OTHERWISE) {
    const value = read.has(key) ? undefined : config.raw(key);
    if (value !== undefined && !harmless.includes(value)) throw config.error(key, expected);
  }
  const { scoring = 'softmax' } = fields;
  if ((config.raw('scoring_func') ?? scoring) !== scoring)
    throw config.error(
      'scoring_func',
      `"${scoring}": shares of experts by another function are not supported`,
    );
  const dense = read.has('mlp_only_layers') ? undefined : config.raw('mlp_only_layers');
  if (dense !== undefined && !(Array.isArray(dense) && dense.length === 0)) {
    throw config.error(
      'mlp_only_layers',
      'empty: layers with one MLP together with layers with experts are not supported',
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
