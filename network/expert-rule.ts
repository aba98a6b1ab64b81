export type ExpertScoring = 'softmax' | 'sigmoid' | 'sparsemixer';

/** Groups that the experts of a mixture lie in side by side, as many in each: a row goes to experts of the `used` highest groups alone. */
export interface ExpertGroups {
  count: number;
  used: number;
  /** A group counts as much as its `top` highest experts together. */
  top: 1 | 2;
}

/**
 * How a mixture chooses the experts of a row by its scores, and shares the row out among them:
 *
 *   chances     the softmax of the scores over all experts, or the sigmoid of each
 *   choice      the `used` highest scores; with groups or a bias: the highest of chance + bias, in the groups that the row goes to
 *   shares      the chances of the chosen, where they are normalized over their sum + sumEpsilon; then times factor, and times the expert's
 *               own number where experts have one
 *
 * sparsemixer, of Phi-MoE, chooses one expert after the other, the highest score first, and each has a softmax of its own: over the scores s
 * that have not been chosen before and are near its own m, by (m - s) / max(|s|, m) <= 2 * jitter. Its chance there is its share.
 *
 * The lower number, of an expert or a group, comes first among equals. What is not a number is lowest, and leaves none among the shares.
 */
export interface ExpertRule {
  /** Number of experts that a row goes to. */
  used: number;
  /** Whether the shares of a row are made to add up to 1. */
  normalize: boolean;
  /** Absent: softmax. sparsemixer: of two experts, which are not normalized. */
  scoring?: ExpertScoring;
  /** Of sparsemixer; absent: 0. */
  jitter?: number;
  /** Absent: all experts are of one group. */
  groups?: ExpertGroups;
  /** Absent: 1. */
  factor?: number;
  /** Of normalized sigmoids; absent: 0. */
  sumEpsilon?: number;
}

/** Experts that sparsemixer chooses. */
export const SPARSE_USED = 2;

/** Most groups of a mixture. */
export const MAX_EXPERT_GROUPS = 256;

/** Experts that a row can go to. */
export const expertsInReach = (count: number, groups: ExpertGroups | undefined): number =>
  groups === undefined ? count : (groups.used * count) / groups.count;

/** Why a mixture of `count` experts cannot go by a rule; null: it can. */
export function ruleError(count: number, { used, groups, scoring, ...rule }: ExpertRule): string | null {
  if (groups !== undefined) {
    const { count: parts, used: usedParts, top } = groups;
    if (!isWithin(parts, 1, MAX_EXPERT_GROUPS) || count % parts !== 0)
      return `${count} experts in ${parts} groups of one size, of which there may be ${MAX_EXPERT_GROUPS}`;
    if (!isWithin(usedParts, 1, parts)) return `${usedParts} of ${parts} groups of experts`;
    if (!isWithin(top, 1, Math.min(2, count / parts)))
      return `the ${top} highest of the ${count / parts} experts of a group`;
  }
  const reach = expertsInReach(count, groups);
  if (!isWithin(used, 1, reach)) return `${used} of ${reach} experts`;
  const { factor = 1, sumEpsilon = 0 } = rule;
  if (!(factor > 0 && Number.isFinite(factor))) return `shares times ${factor}`;
  const wrong = scoring === 'sparsemixer' ? sparseError(used, groups, rule) : jitterError(rule);
  if (wrong !== null) return wrong;
  const isSum = rule.normalize && scoring === 'sigmoid';
  if (sumEpsilon !== 0 && !(isSum && sumEpsilon > 0 && sumEpsilon <= 1))
    return `${sumEpsilon} in a sum of shares`;
  return null;
}

const jitterError = ({ jitter = 0 }: Partial<ExpertRule>) =>
  jitter === 0 ? null : `a jitter of ${jitter} without sparsemixer`;

function sparseError(
  used: number,
  groups: ExpertGroups | undefined,
  { normalize, jitter = 0 }: Partial<ExpertRule>,
): string | null {
  if (used !== SPARSE_USED || normalize || groups !== undefined)
    return `${used} ${normalize ? 'normalized ' : ''}experts of ${groups?.count ?? 1} groups by sparsemixer`;
  return jitter >= 0 && jitter <= 1 ? null : `a jitter of ${jitter}`;
}

/** A rule without fields that say what their absence says. */
export function plainRule(rule: ExpertRule): ExpertRule {
  const { used, normalize, scoring, jitter, groups, factor, sumEpsilon } = rule;
  return {
    used,
    normalize,
    ...(scoring !== undefined && scoring !== 'softmax' && { scoring }),
    ...(jitter !== undefined && jitter !== 0 && { jitter }),
    ...(groups !== undefined && { groups: { ...groups } }),
    ...(factor !== undefined && factor !== 1 && { factor }),
    ...(sumEpsilon !== undefined && sumEpsilon !== 0 && { sumEpsilon }),
  };
}

const isWithin = (value: number, least: number, most: number) =>
  Number.isInteger(value) && value >= least && value <= most;
