import { type NamedText, says, worded } from '../../base/named-text.js';
import type { ExecutorChoice, ExecutorName } from '../../callbacks/gpt-manager-options.js';
import type { NetworkPlan } from '../../network/plan.js';
import { type ExecutorKind, ExecutorUnavailableError } from '../executors/executor-kind.js';
import { AddonError } from '../executors/native/load-addon.js';
import {
  checkOptionsOf,
  type ExecutorOptionParams,
  impossibleOption,
  type UselessOption,
  uselessOptions,
} from '../options/option-effects.js';
import { nativeKind } from './native-kind.js';
import { tensorflowKind } from './tensorflow-kind.js';
import { wasmKind } from './wasm-kind.js';

/** Executor that a user asks for, and its options. */
export interface ExecutorWish extends ExecutorOptionParams {
  executor?: ExecutorChoice | undefined;
}

/** The executor that was chosen. */
export interface ChosenExecutor {
  kind: ExecutorKind;
  /**
   * Reason why `auto` did not get the executor it prefers, how to get that one, and which options are ignored; null: none of
   * these.
   */
  fallback: string | null;
}

/** The kinds of executors in this version, the one that `auto` prefers first. */
const KINDS: readonly ExecutorKind[] = [tensorflowKind, nativeKind, wasmKind];

/**
 * Finds the executor that would compute, as far as this is known without loading anything large.
 * @param plan the network that it is to compute; absent: any
 * @throws AddonError, ExecutorUnavailableError if none can run
 */
export async function likelyExecutor(wish: ExecutorWish, plan?: NetworkPlan): Promise<ChosenExecutor> {
  const { started, fallback } = await startOnExecutor(wish, async (kind) => {
    if (plan !== undefined) requireSupport(kind, plan);
    return kind;
  });
  return { kind: started, fallback };
}

/**
 * Starts something on the named executor, or with `auto` on the first that can run here with these options. If an executor
 * turns out not to run while it starts (an ExecutorUnavailableError, an AddonError), the next is tried; any other error is
 * the caller's.
 * @throws ParameterError for an option that the named executor has no use for
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

/** @throws ExecutorUnavailableError where this kind of executor cannot compute the network: another may be tried */
export function requireSupport(kind: ExecutorKind, plan: NetworkPlan): void {
  const reason = kind.supports(plan);
  if (reason !== null) throw new ExecutorUnavailableError(reason);
}

function automatic(kind: ExecutorKind): ExecutorKind {
  return kind.openAutomatically === undefined ? kind : { ...kind, open: kind.openAutomatically };
}

function unavailable({ name }: ExecutorKind, problem: string): Error {
  return name === 'native' ? new AddonError(problem) : new ExecutorUnavailableError(problem);
}

/** @throws ParameterError if the user named the executor, ExecutorUnavailableError if another may be tried */
function checkOptions(name: ExecutorName, wish: ExecutorWish): void {
  if (wish.executor === name) {
    checkOptionsOf(name, wish);
    return;
  }
  const impossible = impossibleOption(name, wish);
  if (impossible !== null) throw new ExecutorUnavailableError(impossible.reason);
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
