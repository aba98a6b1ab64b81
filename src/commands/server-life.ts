import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeProblem } from '../../base/system-problem.js';
import { UsageError } from '../errors/user-errors.js';
import type { HttpServer } from '../server/listening/http-server.js';
import { abandonLogs } from '../server/logs/log-output.js';
import type { ServingRepository } from '../serving/repository/serving-repository.js';
import type { FolderLock } from './folder-lock.js';

/** Takes the folder of what clients store, for this server alone. @throws UsageError */
export async function filesFolder(path: string): Promise<FolderLock> {
  const { FolderError, FolderLock } = await import('./folder-lock.js');
  try {
    return FolderLock.take(path);
  } catch (error) {
    throw error instanceof FolderError ? new UsageError(`--files-dir: ${error.message}`) : error;
  }
}

/** What works for clients, in whichever protocol. */
export type Listening = Pick<HttpServer, 'drain' | 'close'>;

/** Lets the answers of all of them end. @returns true where all did in time */
export async function drained(servers: readonly Listening[], limitMs: number): Promise<boolean> {
  const results = await Promise.all(servers.map((server) => server.drain(limitMs)));
  return results.every((isDone) => isDone);
}

/** Makes the log's file where there is none, before anything costly is done. @throws UsageError */
export function checkLogFile(path: string): void {
  try {
    closeSync(openSync(path, 'a'));
  } catch (error) {
    throw new UsageError(`The file of --log-file, ${path}, cannot be written: ${writeProblem(error)}`);
  }
}

/** Milliseconds that an answer which is cut off, or failed, may take to notify its client. */
const LAST_WORDS_MS = 3_000;
/** Milliseconds that traces may take to be sent: their receiver may be gone. */
const FLUSH_MS = 2_000;
/** Milliseconds that the engine may take to end. */
const ENGINE_END_MS = 5_000;

/**
 * Cancels what still runs, notifies its clients, and frees the models. Throws the failure, if there is one.
 */
export async function end(
  servers: readonly Listening[],
  repository: ServingRepository,
  flush: () => Promise<void>,
  failure: Error | null,
): Promise<void> {
  const closed = repository.close({ abort: true, terminateAfterMs: LAST_WORDS_MS / 2 });
  await drained(servers, LAST_WORDS_MS);
  await Promise.all(servers.map((server) => server.close()));
  await Promise.race([flush(), sleep(FLUSH_MS, undefined, { ref: false })]);
  const limit = AbortSignal.timeout(ENGINE_END_MS);
  const tooLong = new Promise<boolean>((resolve) => limit.addEventListener('abort', () => resolve(true)));
  if (await Promise.race([closed.then(() => repository.isStuck()), tooLong])) {
    if (failure !== null) process.stderr.write(`skein: ${failure.message}\n`);
    // Any other exit would wait for the thread.
    process.stderr.write('skein: the engine is in a native call that does not return; killing the process\n');
    process.kill(process.pid, 'SIGKILL');
  }
  endWithoutReader();
  if (failure !== null) throw failure;
}

/**
 * Ends the process although its last words find no reader: a write to a full pipe would keep it alive for as
 * long as the other end stays open. Called when all else has ended.
 */
export function endWithoutReader(): void {
  const leave = () => {
    abandonLogs();
    process.exit();
  };
  // The timer keeps nothing alive: where everything is written the process has ended before.
  setTimeout(leave, LAST_WORDS_MS).unref();
}

/** Resolves at the first signal; a second one ends the process at once, as without a handler. */
export function untilSignal(): Promise<null> {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  return new Promise((resolve) => {
    const onSignal = () => {
      for (const signal of signals) process.off(signal, onSignal);
      resolve(null);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}
