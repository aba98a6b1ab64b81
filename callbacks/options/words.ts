import type { ChunkingPolicy, ChunkMs } from '../../scheduler/tokens/types.js';

/** Instruction sets of the native executor, from the slowest to the fastest: those of x86-64, then those of ARM. */
export const INSTRUCTION_SETS = [
  'scalar',
  'avx2',
  'avxvnni',
  'avx512',
  'avx512bf16',
  'amx',
  'neon',
  'neonbf16',
] as const;

export type InstructionSet = (typeof INSTRUCTION_SETS)[number];

/** Names of all executors, in the order in which `auto` prefers them. */
export const EXECUTOR_NAMES = ['tensorflow', 'native', 'wasm'] as const;

export type ExecutorName = (typeof EXECUTOR_NAMES)[number];

/** Name of an executor as a user gives it. */
export type ExecutorChoice = 'auto' | ExecutorName;

/**
 * Milliseconds for the chunks of long prompts on each executor (OptionalParams.maxChunkMs: 'auto'). The bound differs
 * since executors compute at different speeds, and a chunk of few tokens pays a different share of the cost of a step.
 */
export const CHUNK_MS: Readonly<Record<ExecutorName, Readonly<ChunkMs>>> = {
  native: { least: 30, most: 75 },
  tensorflow: { least: 100, most: 100 },
  wasm: { least: 200, most: 200 },
};

/** The default times of chunks as a user reads them: "30 to 75; tensorflow ...". */
export function chunkMsText(): string {
  const { native, ...others } = CHUNK_MS;
  const text = ({ least, most }: ChunkMs) => (least === most ? `${most}` : `${least} to ${most}`);
  return [text(native), ...Object.entries(others).map(([name, ms]) => `${name} ${text(ms)}`)].join('; ');
}

/**
 * draining: no more requests are taken, active ones continue. stopped: ended as asked. failed: the engine
 * could not be loaded, or the worker died and no other one comes.
 */
export type ManagerState = 'starting' | 'running' | 'restarting' | 'draining' | 'stopped' | 'failed';

/**
 * The batching scheme. All three give a request the same tokens and log-probs, bit for bit.
 *
 * InflightFusedBatching: requests join and leave between iterations; context and generation share one forward.
 * InflightBatching: the same with a forward for contexts and one for generation in each iteration.
 * V1: batches in lockstep. A batch starts when the one before has ended, is padded to its longest prompt, and answers
 * when all of it has ended. Runs prompts whole: enableChunkedContext is refused with it.
 */
export type ModelType = 'V1' | 'InflightBatching' | 'InflightFusedBatching';
/** Keys of the statistics string: those of the batch manager, or the richer ones of later versions. */
export type StatsFormat = 'BatchManager' | 'IterationStats';
/** Whether computing threads stay on cores of their own. See OptionalParams.pinThreads. */
export type PinThreads = 'auto' | 'on' | 'off';
/** Source of drafts: none, n-grams of the sequence itself, or the model's own head. See OptionalParams.speculate. */
export type Speculate = 'none' | 'ngram' | 'mtp';

/** Policy of the server with chunked prefill where none is given: one long prompt must not keep all others waiting. */
export const DEFAULT_CHUNKING_POLICY: ChunkingPolicy = 'SHORTEST_FIRST';
