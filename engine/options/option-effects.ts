import { type NamedText, option as optionName, says } from '../../base/named-text.js';
import type { ExecutorName, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';

/** Options of a model that some executors cannot use. */
export type ExecutorOptionParams = {
  [Name in
    | 'threads'
    | 'instructionSet'
    | 'computeWeight'
    | 'pinThreads'
    | 'enableTrtOverlap'
    | 'kvDtype'
    | 'peftCacheManagerConfig'
    | 'tensorParallelSize'
    | 'pipelineParallelSize'
    | 'panels'
    | 'expertFraction']?: OptionalParams[Name] | undefined;
};

/** A given option that an executor cannot use, and the reason. */
export interface UselessOption {
  option: string;
  why: string;
}

/** A given option with which an executor cannot run. */
export interface ImpossibleOption {
  option: string;
  /** For a user who named the executor. */
  refusal: NamedText;
  /** The same, where another executor may be tried. */
  reason: NamedText;
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
  const { threads, instructionSet, computeWeight = 1, enableTrtOverlap, pinThreads } = params;
  const { expertFraction = 1 } = params;
  const useless: UselessOption[] = [];
  if (executor === 'wasm' && threads !== undefined && threads > 1)
    useless.push({ option: 'threads', why: 'it computes in one thread' });
  if (instructionSet !== undefined) useless.push({ option: 'instructionSet', why: HAS_NO_INSTRUCTION_SETS });
  if (environment.SKEIN_ISA) useless.push({ option: 'SKEIN_ISA', why: HAS_NO_INSTRUCTION_SETS });
  if (computeWeight !== 1)
    useless.push({ option: 'computeWeight', why: 'it takes no turns with other models' });
  if (expertFraction < 1) useless.push({ option: 'expertFraction', why: 'it holds all weights in memory' });
  if (pinThreads === 'on') useless.push({ option: 'pinThreads', why: 'it places no threads' });
  if (enableTrtOverlap)
    useless.push({ option: 'enableTrtOverlap', why: 'it computes in the thread whose work would be hidden' });
  return useless;
}

/** The first option with which an executor cannot run; null: it can. */
export function impossibleOption(
  executor: ExecutorName,
  {
    kvDtype,
    peftCacheManagerConfig,
    tensorParallelSize = 1,
    pipelineParallelSize = 1,
    panels = true,
  }: ExecutorOptionParams,
): ImpossibleOption | null {
  if (executor !== 'native' && !panels) {
    const refusal = says`The ${executor} executor converts its weights; computing with a GGUF as it lies (${optionName('panels')}) is of the native executor.`;
    return { option: 'panels', refusal, reason: refusal };
  }
  if (executor !== 'native' && tensorParallelSize * pipelineParallelSize > 1) {
    const refusal = says`The ${executor} executor runs a model in one process alone; leave ${optionName(tensorParallelSize > 1 ? 'tensorParallelSize' : 'pipelineParallelSize')} out or take the native executor.`;
    return { option: 'executor', refusal, reason: refusal };
  }
  if (peftCacheManagerConfig !== undefined && executor !== 'native') {
    return { option: 'executor', refusal: takesNoAdapters(executor), reason: takesNoAdapters(executor) };
  }
  const kept = KV_DTYPES[executor];
  if (kvDtype === undefined || kept.includes(kvDtype)) return null;
  const useless = { option: 'kvDtype', why: `it keeps the KV cache as ${kept.join(' or ')}` };
  const reason = says`The ${executor} executor cannot take the ${optionName('kvDtype')} that is given: ${useless.why}.`;
  return { option: 'kvDtype', refusal: refusalOf(executor, useless), reason };
}

/** Why an executor cannot have LoRA adapters. */
export function takesNoAdapters(executor: string): NamedText {
  return says`The executor ${executor} takes no LoRA adapters; the native one does (${optionName('executor')}).`;
}

function refusalOf(executor: ExecutorName, { option, why }: UselessOption): NamedText {
  return says`${optionName(option)} is refused: the ${executor} executor has no use for it, since ${why}; leave it out, or take another executor.`;
}

/** @throws ParameterError for an option that the named executor cannot use */
export function checkOptionsOf(executor: ExecutorName, params: ExecutorOptionParams): void {
  const impossible = impossibleOption(executor, params);
  if (impossible !== null) throw new ParameterError(impossible.option, impossible.refusal);
  const [useless] = uselessOptions(executor, params);
  if (useless !== undefined) throw new ParameterError(useless.option, refusalOf(executor, useless));
}

/** Throws a ParameterError if an option cannot be honoured by the named executor. */
export function checkExecutor(params: OptionalParams): void {
  const { executor, executorModule } = params;
  if (executor === undefined || executor === 'auto') return;
  if (executorModule !== undefined) {
    throw new ParameterError(
      'executor',
      'executor is refused: executorModule brings an executor of its own; leave one of them out.',
    );
  }
  checkOptionsOf(executor, params);
}
