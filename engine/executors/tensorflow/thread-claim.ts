import { readFileSync } from 'node:fs';
import { threadId } from 'node:worker_threads';
import { ExecutorUnavailableError } from '../executor-kind.js';

/** Which thread has TensorFlow: in the environment, which the threads of an engine share with the process. */
const CLAIM = 'SKEIN_TENSORFLOW_CLAIM';
/** A thread that died while it loaded left a claim behind; no loading takes longer. */
const LOADING_MS = 10_000;

export interface ClaimScene {
  environment: Record<string, string | undefined>;
  threadId: number;
  nowMs: number;
  /** Whether TensorFlow's binding is in this process; null: it cannot be told. */
  isLoaded: boolean | null;
}

/**
 * Claims TensorFlow for this thread: its binding has one state for a process, which a second thread would take over, and
 * the process die of it when one of them ends. A thread that is gone has unloaded it, and the next one may have it.
 * @returns what is to be called when it is loaded.
 * @throws ExecutorUnavailableError where another thread has it.
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

/** Gives it back, so that nobody has to find out that this thread is gone. */
export function releaseTensorFlow(
  environment: ClaimScene['environment'] = process.env,
  own = threadId,
): void {
  if (environment[CLAIM]?.split(' ')[0] === String(own)) delete environment[CLAIM];
}

function presentScene(): ClaimScene {
  return { environment: process.env, threadId, nowMs: Date.now(), isLoaded: isBindingLoaded() };
}

/** Linux says which files a process has mapped. */
function isBindingLoaded(): boolean | null {
  try {
    return readFileSync('/proc/self/maps', 'utf8').includes('tfjs_binding.node');
  } catch {
    return null;
  }
}
