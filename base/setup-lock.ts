import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { ProcessLock } from './process-lock.js';
import { writeProblem } from './system-problem.js';

export interface SetupLockOptions {
  onStep: (text: string) => void;
  signal?: AbortSignal | undefined;
  /** The error that a sentence is thrown as. */
  failure: (message: string) => Error;
}

/** Waits until no other process sets up the same folder. @throws `failure` where the lock cannot be written; the reason of the signal */
export async function takeSetupLock(
  target: string,
  { onStep, signal, failure }: SetupLockOptions,
): Promise<ProcessLock> {
  const path = `${target}.lock`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    return await ProcessLock.take(
      path,
      () => onStep('waiting for another process that does the same'),
      signal,
    );
  } catch (error) {
    signal?.throwIfAborted();
    throw failure(`${path} cannot be written: ${writeProblem(error)}`);
  }
}
