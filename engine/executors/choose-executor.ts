import { AddonError } from '../native/load-addon.js';
import {
  type ExecutorChoice,
  type ExecutorKind,
  type ExecutorName,
  ExecutorUnavailableError,
} from './executor-kind.js';
import { nativeKind } from './native-kind.js';

/** What a user has said about who is to compute. */
export interface ExecutorWish {
  executor?: ExecutorChoice | undefined;
}

/** Who computes. */
export interface ChosenExecutor {
  kind: ExecutorKind;
  /** Why it is not the one that `auto` would rather have, and how to get that one; null: it is. */
  fallback: string | null;
}

/** Those of this version, from the one that `auto` likes best. */
const KINDS: readonly ExecutorKind[] = [nativeKind];

/** Why this version refuses an executor whatever the machine; null: it has it. */
export function missingInVersion(executor: ExecutorName): string | null {
  const names = KINDS.map(({ name }) => name);
  if (names.includes(executor)) return null;
  return `executor is refused: the ${executor} executor is not there yet in this version; take ${names.join(' or ')}, or leave it out.`;
}

/**
 * Who would compute, as far as can be told without loading anything large.
 * @throws AddonError, ExecutorUnavailableError where nothing can.
 */
export async function likelyExecutor(wish: ExecutorWish): Promise<ChosenExecutor> {
  const { started, fallback } = await startOnExecutor(wish, async (kind) => kind);
  return { kind: started, fallback };
}

/**
 * Starts something on the executor that is named, or with `auto` on the first that can run here. One that turns out not to
 * run while it starts (an ExecutorUnavailableError, an AddonError) makes room for the next; any other error is the caller's.
 */
export async function startOnExecutor<T>(
  { executor = 'auto' }: ExecutorWish,
  start: (kind: ExecutorKind) => Promise<T>,
  kinds: readonly ExecutorKind[] = KINDS,
): Promise<{ started: T; fallback: string | null }> {
  const problems: string[] = [];
  let last: Error | null = null;
  for (const kind of kinds.filter(({ name }) => executor === 'auto' || name === executor)) {
    try {
      const problem = await kind.problem();
      if (problem !== null) throw unavailable(kind, problem);
      const started = await start(kind);
      return { started, fallback: problems.length === 0 ? null : fallbackText(kind, problems) };
    } catch (error) {
      if (!(error instanceof ExecutorUnavailableError || error instanceof AddonError)) throw error;
      last = error;
      problems.push(error.message);
    }
  }
  if (last === null && executor !== 'auto')
    throw new ExecutorUnavailableError(missingInVersion(executor) ?? executor);
  throw last;
}

function unavailable({ name }: ExecutorKind, problem: string): Error {
  return name === 'native' ? new AddonError(problem) : new ExecutorUnavailableError(problem);
}

function fallbackText({ name }: ExecutorKind, problems: readonly string[]): string {
  return `The ${name} executor runs in the place of a faster one: ${problems.join(' ')}`;
}
