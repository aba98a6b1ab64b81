import { readFileSync } from 'node:fs';
import { threadId } from 'node:worker_threads';
import { ExecutorUnavailableError } from '../executor-kind.js';

/**
 * Environment variable that names the thread using TensorFlow; the threads of an engine share the environment with the
 * process.
 */
const CLAIM = 'SKEIN_TENSORFLOW_CLAIM';
/** Age at which a claim is stale: no loading takes longer, so its thread died while loading. */
const LOADING_MS = 10_000;

export interface ClaimScene {
  environment: Record<string, string | undefined>;
  threadId: number;
  nowMs: number;
  /** True if TensorFlow's binding is loaded in this process; null: unknown. */
  isLoaded: boolean | null;
}

/**
 * Claims TensorFlow for this thread. Its binding has one state for a process: a second thread would take that over, and
 * the process would die when one of the threads ends. A thread that has ended has unloaded the binding, and another may
 * claim it.
 * @returns function to be called once TensorFlow is loaded.
 * @throws ExecutorUnavailableError if another thread has it.
 */
export function claimTensorFlow(scene: ClaimScene = presentScene()): () => void {
  const { environment, threadId: own, nowMs, isLoaded } = scene;
  const [owner, since] = (environment[CLAIM] ?? '').split(' ');
  const isOwn = owner === String(own);
  const isLoading = since !== undefined && nowMs - Number(since) < LOADING_MS;
  const isTaken = isLoaded ?? (owner !== undefined && owner !== '' && since === undefined);
  if (!isOwn && (isTaken || isLoading)) {
    throw new ExecutorUnavailableError(
      'TensorFlow computes in one thread of a process, and another one has it already; run this model in a process of its own, or on another executor.',
    );
  }
  if (!isOwn || isLoaded === false) environment[CLAIM] = `${own} ${nowMs}`;
  return () => {
    environment[CLAIM] = String(own);
  };
}

/** Gives up the claim, so that other threads need not find out that this one is gone. */
export function releaseTensorFlow(
  environment: ClaimScene['environment'] = process.env,
  own = threadId,
): void {
  if (environment[CLAIM]?.split(' ')[0] === String(own)) delete environment[CLAIM];
}

function presentScene(): ClaimScene {
  return { environment: process.env, threadId, nowMs: Date.now(), isLoaded: isBindingLoaded() };
}

/** Reads the process's mapped files, which Linux lists. */
function isBindingLoaded(): boolean | null {
  try {
    return readFileSync('/proc/self/maps', 'utf8').includes('tfjs_binding.node');
  } catch {
    return null;
  }
}
