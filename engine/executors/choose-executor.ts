import { type NamedText, option, says, worded } from '../../base/named-text.js';
import type { ExecutorChoice, ExecutorName } from '../../callbacks/gpt-manager-options.js';
import {
  checkOptionsOf,
  type ExecutorOptionParams,
  impossibleOption,
  type UselessOption,
  uselessOptions,
} from '../options/option-effects.js';
import { type ExecutorKind, ExecutorUnavailableError } from './executor-kind.js';
import { AddonError } from './native/load-addon.js';
import { nativeKind } from './native-kind.js';
import { tensorflowKind } from './tensorflow-kind.js';
import { wasmKind } from './wasm-kind.js';

/** What a user has said about who is to compute, and how. */
export interface ExecutorWish extends ExecutorOptionParams {
  executor?: ExecutorChoice | undefined;
}

/** The executor that was chosen. */
export interface ChosenExecutor {
  kind: ExecutorKind;
  /** Why it is not the one that `auto` would rather have, how to get that one, and what it ignores; null: nothing of that. */
  fallback: string | null;
}

/** The kinds of executors that this version has, from the one that `auto` likes best. */
const KINDS: readonly ExecutorKind[] = [tensorflowKind, nativeKind, wasmKind];

/**
 * Who would compute, as far as can be told without loading anything large.
 * @throws AddonError, ExecutorUnavailableError where nothing can.
 */
export async function likelyExecutor(wish: ExecutorWish): Promise<ChosenExecutor> {
  const { started, fallback } = await startOnExecutor(wish, async (kind) => kind);
  return { kind: started, fallback };
}

/**
 * Starts something on the executor that is named, or with `auto` on the first that can run here with these options. One that
 * turns out not to run while it starts (an ExecutorUnavailableError, an AddonError) makes room for the next; any other error
 * is the caller's.
 * @throws ParameterError for an option that the executor which is named has no use for.
 */
export async function startOnExecutor<T>(
  wish: ExecutorWish,
  start: (kind: ExecutorKind) => Promise<T>,
  kinds: readonly ExecutorKind[] = KINDS,
): Promise<{ started: T; fallback: string | null }> {
  const { executor = 'auto' } = wish;
  const problems: NamedText[] = [];
  const hints: string[] = [];
  let last: unknown = null;
  for (const kind of kinds.filter(({ name }) => executor === 'auto' || name === executor)) {
    if (executor === 'auto' && (await kind.isAutomatic?.()) === false) {
      const hint = (await kind.hint?.()) ?? null;
      if (hint !== null) hints.push(hint);
      continue;
    }
    try {
      const problem = await kind.problem();
      if (problem !== null) throw unavailable(kind, problem);
      checkOptions(kind.name, wish);
      const started = await start(executor === 'auto' ? automatic(kind) : kind);
      const useless = uselessOptions(kind.name, wish);
      return {
        started,
        fallback: remarks(
          kind.name,
          problems.map((problem) => worded(problem)),
          hints,
          useless,
        ),
      };
    } catch (error) {
      if (!(error instanceof ExecutorUnavailableError || error instanceof AddonError)) throw error;
      last = error;
      problems.push(error.text);
    }
  }
  throw problems.length === 1
    ? last
    : new ExecutorUnavailableError(
        problems.reduce((before, one) => says`${before} ${one}`, 'No executor can run this model.'),
      );
}

function automatic(kind: ExecutorKind): ExecutorKind {
  return kind.openAutomatically === undefined ? kind : { ...kind, open: kind.openAutomatically };
}

function unavailable({ name }: ExecutorKind, problem: string): Error {
  return name === 'native' ? new AddonError(problem) : new ExecutorUnavailableError(problem);
}

/** @throws ParameterError where the executor is named, ExecutorUnavailableError where another may be found. */
function checkOptions(name: ExecutorName, wish: ExecutorWish): void {
  if (wish.executor === name) {
    checkOptionsOf(name, wish);
    return;
  }
  const impossible = impossibleOption(name, wish);
  if (impossible === null) return;
  throw new ExecutorUnavailableError(
    says`The ${name} executor cannot take the ${option(impossible.option)} that is given: ${impossible.why}.`,
  );
}

function remarks(
  name: ExecutorName,
  problems: readonly string[],
  hints: readonly string[],
  useless: readonly UselessOption[],
): string | null {
  if (problems.length + hints.length + useless.length === 0) return null;
  const place =
    problems.length === 0 ? 'computes.' : `runs in the place of a faster one: ${problems.join(' ')}`;
  const ignored = useless.map(({ option, why }) => `${option} has no effect there: ${why}.`);
  return [`The ${name} executor ${place}`, ...hints, ...ignored].join(' ');
}
