import { Random } from '../support/random.js';
import { FAULTS, faultNamed } from './kinds/index.js';

/** A fault that is to come. */
export interface PlannedFault {
  /** Name of its kind. */
  kind: string;
  /** Tokens that clients have seen when it begins, of all requests together. */
  at: number;
  /** Of its own choices: the victim, how long it lasts, how it is done. */
  seed: number;
}

/** Faults begin in this part of all tokens: while all clients ask, and with requests left for what they do. */
const [FIRST_SHARE, LAST_SHARE] = [0.03, 0.85];

/**
 * Draws when each fault begins. The same seed gives the same plan, and one more fault of a kind leaves the others where they are.
 * @param counts how many of each kind, by flag
 * @param numTokens tokens of all answers
 */
export function drawSchedule(
  counts: Readonly<Record<string, number>>,
  numTokens: number,
  seed: number,
): PlannedFault[] {
  const plan = FAULTS.flatMap(({ name, flag }, index) => {
    const random = new Random(seed * 31 + index + 1);
    return Array.from({ length: counts[flag] ?? 0 }, (): PlannedFault => {
      const share = FIRST_SHARE + random.uniform() * (LAST_SHARE - FIRST_SHARE);
      return { kind: name, at: Math.floor(share * numTokens), seed: random.below(100_000) };
    });
  });
  return inOrder(plan);
}

const inOrder = (plan: readonly PlannedFault[]) => plan.toSorted((a, b) => a.at - b.at);

const NO_FAULTS = 'none';

/** A plan as `--at` takes it: `kill@120/7,stop@300/12`. */
export const planText = (plan: readonly PlannedFault[]): string =>
  plan.map(({ kind, at, seed }) => `${kind}@${at}/${seed}`).join(',') || NO_FAULTS;

/** @throws where it is not one */
export function parsePlan(text: string): PlannedFault[] {
  if (text === NO_FAULTS) return [];
  const plan = text.split(',').map((part): PlannedFault => {
    const found = /^([a-z-]+)@(\d{1,9})\/(\d{1,9})$/.exec(part);
    if (found === null)
      throw new Error(`"${part}" is no fault of a plan; one is KIND@TOKENS/SEED, such as kill@120/7.`);
    return { kind: faultNamed(found[1]!).name, at: Number(found[2]), seed: Number(found[3]) };
  });
  return inOrder(plan);
}
