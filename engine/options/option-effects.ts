import { option as optionName, says } from '../../base/named-text.js';
import type { ExecutorName, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { KvDtype } from '../../kvcache/kv-dtype.js';

/** Options of a model that some executors cannot use. */
export type ExecutorOptionParams = {
  [Name in 'threads' | 'instructionSet' | 'computeWeight' | 'enableTrtOverlap' | 'kvDtype']?:
    | OptionalParams[Name]
    | undefined;
};

/** A given option that an executor cannot use, and the reason. */
export interface UselessOption {
  option: string;
  why: string;
}

/** Types that each executor's KV cache can have. */
const KV_DTYPES: Readonly<Record<ExecutorName, readonly KvDtype[]>> = {
  native: ['f32', 'bf16', 'int8'],
  tensorflow: ['f32', 'bf16'],
  wasm: ['f32'],
};

const HAS_NO_INSTRUCTION_SETS = 'instruction sets are of the native executor';

/**
 * Given options that change no answer and that an executor cannot use: an error if the user named the executor, a notice
 * if `auto` chose it.
 */
export function uselessOptions(
  executor: ExecutorName,
  params: ExecutorOptionParams,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): UselessOption[] {
  if (executor === 'native') return [];
  const { threads, instructionSet, computeWeight = 1, enableTrtOverlap } = params;
  const useless: UselessOption[] = [];
  if (executor === 'wasm' && threads !== undefined && threads > 1)
    useless.push({ option: 'threads', why: 'it computes in one thread' });
  if (instructionSet !== undefined) useless.push({ option: 'instructionSet', why: HAS_NO_INSTRUCTION_SETS });
  if (environment.SKEIN_ISA) useless.push({ option: 'SKEIN_ISA', why: HAS_NO_INSTRUCTION_SETS });
  if (computeWeight !== 1)
    useless.push({ option: 'computeWeight', why: 'it takes no turns with other models' });
  if (enableTrtOverlap)
    useless.push({ option: 'enableTrtOverlap', why: 'it computes in the thread whose work would be hidden' });
  return useless;
}

/** Reason why an executor cannot run with these options, to follow `kvDtype is refused: ...`; null: it can. */
export function impossibleOption(executor: ExecutorName, params: ExecutorOptionParams): UselessOption | null {
  const { kvDtype } = params;
  const kept = KV_DTYPES[executor];
  if (kvDtype === undefined || kept.includes(kvDtype)) return null;
  return { option: 'kvDtype', why: `it keeps the KV cache as ${kept.join(' or ')}` };
}

/** @throws ParameterError for an option that the named executor cannot use */
export function checkOptionsOf(executor: ExecutorName, params: ExecutorOptionParams): void {
  const refused = impossibleOption(executor, params) ?? uselessOptions(executor, params)[0];
  if (refused === undefined) return;
  const { option, why } = refused;
  throw new ParameterError(
    option,
    says`${optionName(option)} is refused: the ${executor} executor has no use for it, since ${why}; leave it out, or take another executor.`,
  );
}
