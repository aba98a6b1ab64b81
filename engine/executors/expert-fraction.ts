import { type NamedText, option, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { countedExperts, type ExpertBytes } from './memory-budget.js';

/** Shares that are tried, from the greatest on. */
const TRIED_SHARES = Array.from({ length: 19 }, (_, i) => (95 - 5 * i) / 100);

/**
 * A prompt goes to most experts of a layer at once. Where memory has no room for them, the first are gone again before they are
 * multiplied, and are read a page at a time.
 *
 * @throws ParameterError for a share of the experts that those of one layer do not fit into
 */
export function checkExpertFraction(experts: ExpertBytes, fraction: number): void {
  if (countedExperts(experts, fraction) >= experts.bytesOfLayer) return;
  throw new ParameterError(
    'expertFraction',
    says`${option('expertFraction')} is ${fraction}, which is ${megabytes(countedExperts(experts, fraction))} of ${megabytes(experts.bytes)} of experts; those of one layer, which a prompt reads together, take ${megabytes(experts.bytesOfLayer)}, so at least ${leastFraction(experts)} is needed.`,
  );
}

/**
 * A sentence for a model that memory has no room for, with what would make some.
 *
 * @param fits throws where a share is too great; null: others have shared out the memory
 */
export function withExpertHint(
  problem: NamedText | string,
  experts: ExpertBytes,
  fraction: number,
  fits: ((fraction: number) => unknown) | null,
): NamedText {
  const share =
    fits === null
      ? `less than ${fraction}`
      : TRIED_SHARES.find((one) => one < fraction && isPossible(experts, one, fits));
  const size = megabytes(experts.bytes);
  if (share === undefined) return says`${problem} Its experts take ${size}.`;
  return says`${problem} Its experts take ${size}: with ${option('expertFraction')} = ${share}, memory counts for that share of them, and the others are read from the disk as tokens go to them.`;
}

function isPossible(experts: ExpertBytes, share: number, fits: (fraction: number) => unknown): boolean {
  if (share < leastFraction(experts)) return false;
  try {
    fits(share);
    return true;
  } catch {
    return false;
  }
}

/** In hundredths, rounded up. */
const leastFraction = ({ bytes, bytesOfLayer }: ExpertBytes) => Math.ceil((100 * bytesOfLayer) / bytes) / 100;

const megabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`;
