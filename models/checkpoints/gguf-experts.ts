import {
  type ExpertGroups,
  expertsInReach,
  MAX_EXPERT_GROUPS,
  SPARSE_USED,
} from '../../network/expert-rule.js';
import { expertNames } from '../architectures/expert-names.js';
import type { ExpertsConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import { decoderFamily } from './decoder-families.js';
import { behindDense, oneOfEach } from './expert-layers.js';
import { checkExperts, type ExpertFields } from './experts-config.js';
import type { GgufKeys } from './gguf-keys.js';

/** Width of the MLP next to the experts, which Granite 4 has. */
export const SHARED_WIDTH = 'expert_shared_feed_forward_length';

/** Keys of experts that are computed in another way where a family does not read them, each with the values that change nothing. */
const OTHERWISE: readonly (readonly [key: string, harmless: readonly number[], expected: string])[] = [
  ['expert_shared_count', [0], '0 (experts that all tokens go to are not supported)'],
  [SHARED_WIDTH, [0], '0 (experts that all tokens go to are not supported)'],
  ['expert_group_count', [0, 1], '0 or 1 (groups of experts are not supported)'],
  ['expert_group_scale', [0, 1], '1 (groups of experts are not supported)'],
  ['experts_per_group', [0], '0 (groups of experts are not supported)'],
  ['expert_latent_length', [0], '0 (experts of a width of their own are not supported)'],
  ['moe_latent_size', [0], '0 (experts of a width of their own are not supported)'],
  ['expert_weights_scale', [0, 1], '1 (no other factor on the sum of the experts is supported)'],
  [
    'leading_dense_block_count',
    [0],
    '0 (layers with one MLP together with layers with experts are not supported)',
  ],
  [
    'interleave_moe_layer_step',
    [0, 1],
    '1 (layers with one MLP together with layers with experts are not supported)',
  ],
  [
    'moe_every_n_layers',
    [0, 1],
    '1 (layers with one MLP together with layers with experts are not supported)',
  ],
];

/** Name of nomic-embed v2 in GGUF, whose experts lie in some layers alone. */
const NOMIC = 'nomic-bert-moe';

/** True where layers of a file's architecture may have experts. */
export function mayHaveExperts(keys: GgufKeys, architecture: string): boolean {
  if (decoderFamily(architecture)?.ownExperts !== undefined) return hasExperts(keys);
  return expertNames(architecture) !== undefined || keys.architecture === NOMIC;
}

/** GGUF's numbers of the functions that make chances of scores. */
const SCORING = { softmax: 1, sigmoid: 2 };

/** Families whose shares llama.cpp never makes add up to 1, and those in which a file says whether it does. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['qwen2moe', 'olmoe', 'phimoe', 'ropebert']);
const BY_KEY: ReadonlySet<string> = new Set(['glm4moe', 'nemotronh']);

/** True where a file says that its layers have experts. */
export function hasExperts(keys: GgufKeys): boolean {
  return (keys.number('expert_count') ?? 0) !== 0;
}

/**
 * The experts of a file whose architecture has them, computed as llama.cpp does it for this architecture whatever the file says; a file
 * that says otherwise is refused. @throws CheckpointError
 */
export function expertsOfGguf(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
  tensors: ReadonlyMap<string, unknown>,
): ExpertsConfig {
  const count = keys.integer('expert_count', 1, LIMITS.experts);
  checkExperts(keys.file, numLayers, count);
  if (keys.architecture === NOMIC) return expertsOfNomic(keys, architecture, numLayers, count);
  const { experts, ownExperts } = decoderFamily(architecture) ?? {};
  const fields: ReadFields = experts ?? ownExperts ?? {};
  const isBeside = architecture === 'granite4';
  refuseOthers(keys, keysRead(fields, isBeside), fields.scoring);
  const groups = fields.groups && groupsOf(keys, count, fields.groups.top);
  const isSparse = fields.sparseJitter !== undefined;
  const [least, most] = isSparse ? [SPARSE_USED, SPARSE_USED] : [1, expertsInReach(count, groups)];
  const used = keys.integer('expert_used_count', least, most);
  const normalize = isNormalized(keys, architecture);
  const width = widthOf(keys, architecture, used);
  const dense = behindFirst(fields) ? keys.integer('leading_dense_block_count', 0, numLayers - 1, 0) : 0;
  const factor = fields.hasFactor ? keys.positive('expert_weights_scale', 1) : 1;
  return {
    count,
    used,
    width,
    normalize,
    ...(fields.scoring && { scoring: fields.scoring }),
    // llama.cpp computes these by a softmax of the two highest, which the model was not made with.
    ...(fields.sparseJitter !== undefined && {
      scoring: 'sparsemixer' as const,
      jitter: fields.sparseJitter,
    }),
    ...((fields.choiceBias === true || (fields.choiceBias && hasChoiceBias(tensors))) && {
      choiceBias: true,
    }),
    ...(fields.shareScales && { shareScales: true }),
    ...(groups && { groups }),
    ...(factor !== 1 && { factor }),
    ...(normalize && fields.sumEpsilon !== undefined && { sumEpsilon: fields.sumEpsilon }),
    ...(fields.shared && { sharedWidth: sharedWidthOf(keys, fields.shared, width) }),
    ...(fields.biased && { biased: true }),
    ...(fields.clamped && { clamped: fields.clamped }),
    ...(dense > 0 && { layers: behindDense(numLayers, dense) }),
  };
}

const hasChoiceBias = (tensors: ReadonlyMap<string, unknown>) =>
  [...tensors.keys()].some((name) => /^blk\.\d+\.exp_probs_b\.bias$/.test(name));

type ReadFields = Pick<
  ExpertFields,
  | 'shared'
  | 'dense'
  | 'scoring'
  | 'choiceBias'
  | 'shareScales'
  | 'groups'
  | 'hasFactor'
  | 'sumEpsilon'
  | 'sparseJitter'
  | 'biased'
  | 'clamped'
  | 'besides'
>;

/** In each layer that follows one without. */
function expertsOfNomic(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
  count: number,
): ExpertsConfig {
  refuseOthers(keys, new Set(['moe_every_n_layers']));
  const normalize = isNormalized(keys, architecture);
  const used = keys.integer('expert_used_count', 1, count);
  const every = keys.integer('moe_every_n_layers', 2, LIMITS.layers);
  const width = keys.integer('feed_forward_length', 1, LIMITS.width);
  return { count, used, width, normalize, layers: oneOfEach(numLayers, every), withoutBias: true };
}

const behindFirst = ({ dense }: ReadFields) => dense !== undefined && dense !== 'bySteps';

/** Those of OTHERWISE that a family reads. @param isBeside the MLP that layers have anyway has the width that files call that of shared experts */
function keysRead(fields: ReadFields, isBeside: boolean): Set<string> {
  const { shared, groups, hasFactor, besides = [] } = fields;
  return new Set([
    ...(isBeside ? [SHARED_WIDTH] : []),
    ...(besides.includes('n_shared_experts') ? ['expert_shared_count'] : []),
    ...(shared ? ['width' in shared ? SHARED_WIDTH : 'expert_shared_count'] : []),
    ...(groups ? ['expert_group_count'] : []),
    ...(hasFactor ? ['expert_weights_scale'] : []),
    ...(behindFirst(fields) ? ['leading_dense_block_count'] : []),
  ]);
}

function refuseOthers(
  keys: GgufKeys,
  read: ReadonlySet<string>,
  scoring: 'softmax' | 'sigmoid' = 'softmax',
): void {
  for (const [key, harmless, expected] of OTHERWISE) {
    const value = read.has(key) ? undefined : keys.number(key);
    if (value !== undefined && !harmless.includes(value)) throw keys.error(key, expected, value);
  }
  const gating = keys.number('expert_gating_func') ?? 0;
  if (gating === 0 || gating === SCORING[scoring]) return;
  const expected = `${SCORING[scoring]} (${scoring}: shares of experts by another function are not supported)`;
  throw keys.error('expert_gating_func', expected, gating);
}

function isNormalized(keys: GgufKeys, architecture: string): boolean {
  const given = keys.boolean('expert_weights_norm');
  if (BY_KEY.has(architecture)) return given ?? false;
  const usual = !AS_THEY_ARE.has(architecture);
  if (given === undefined || given === usual) return usual;
  const meaning = usual
    ? 'the shares of experts add up to 1'
    : 'the shares of experts stay those of all experts';
  throw keys.error('expert_weights_norm', `${usual} (${meaning})`, given);
}

/** Groups of experts; undefined: all are of one. */
function groupsOf(keys: GgufKeys, count: number, top: 1 | 2): ExpertGroups | undefined {
  const groups = keys.integer('expert_group_count', 0, MAX_EXPERT_GROUPS, 0);
  if (groups <= 1) return undefined;
  if (count % groups !== 0 || count / groups < top) {
    const expected = `a number that parts the ${count} experts into equal groups of at least ${top}`;
    throw keys.error('expert_group_count', expected, groups);
  }
  return { count: groups, used: keys.integer('expert_group_used_count', 1, groups), top };
}

function sharedWidthOf(keys: GgufKeys, shared: NonNullable<ExpertFields['shared']>, width: number): number {
  if (!('width' in shared))
    return width * keys.integer('expert_shared_count', 1, Math.floor(LIMITS.width / width), shared.usually);
  const whole = widthOfMlps(keys);
  return keys.integer(SHARED_WIDTH, 1, LIMITS.width, whole);
}

/** The one width of all MLPs of a file; undefined where there are several, or none. */
function widthOfMlps(keys: GgufKeys): number | undefined {
  return keys.list('feed_forward_length') === undefined ? keys.number('feed_forward_length') : undefined;
}

/**
 * Files of Mixtral, OLMoE, Phi-MoE and Granite give the experts no width but that of the MLP; where others
 * have none, it is the part of those that are used.
 */
function widthOf(keys: GgufKeys, architecture: string, used: number): number {
  const whole = widthOfMlps(keys) ?? 0;
  const usual = HAVE_ONE_WIDTH.has(architecture) ? whole : Math.floor(whole / used);
  return keys.integer('expert_feed_forward_length', 1, LIMITS.width, usual);
}

const HAVE_ONE_WIDTH: ReadonlySet<string> = new Set(['mixtral', 'olmoe', 'phimoe', 'granite4']);
