import { closeSync, openSync, readFileSync, rmSync, statSync, utimesSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { isAlive, keepOnExit, removeOnExit } from './build-directory.js';

/** A lock's holder touches it while the work continues; a lock untouched for this long is given up. */
const STALE_AFTER_MS = 10 * 60 * 1000;
/** Time between two looks at a lock that another process holds. */
const POLL_MS = 200;
/** A lock that names no process was written in part by a process that ended there. */
const UNREADABLE_AFTER_MS = 5_000;

/** A lock against two processes doing the same work: a file that names the process, removed when the process ends. */
export class ProcessLock {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Takes the lock; null where another living process holds it. @throws the system's error where the file cannot be
   * written.
   */
  static tryTake(path: string): ProcessLock | null {
    for (;;) {
      if (createLockFile(path)) {
        removeOnExit(path);
        return new ProcessLock(path);
      }
      if (!isStale(path)) return null;
      rmSync(path, { force: true });
    }
  }

  /**
   * Waits until no other process holds it. @param onWait called once, where one does
   * @throws as tryTake; the reason of the signal
   */
  static async take(path: string, onWait: () => void, signal?: AbortSignal): Promise<ProcessLock> {
    for (let isSaid = false; ; isSaid = true) {
      const lock = ProcessLock.tryTake(path);
      if (lock !== null) return lock;
      if (!isSaid) onWait();
      await setTimeout(POLL_MS, undefined, { signal });
    }
  }

  /** Says that the work continues. */
  touch(): void {
    touchLockFile(this.#path);
  }

  release(): void {
    rmSync(this.#path, { force: true });
    keepOnExit(this.#path);
  }
}

/** Makes a file that names this process; false where it is there already. @throws the system's error where it cannot be written */
export function createLockFile(path: string, mode?: number): boolean {
  try {
    const fd = openSync(path, 'wx', mode);
    writeSync(fd, JSON.stringify({ pid: process.pid, host: hostname() }));
    closeSync(fd);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function isStale(path: string): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) return false;
  const age = Date.now() - status.mtimeMs;
  if (age > STALE_AFTER_MS) return true;
  const holder = holderOf(path);
  return holder === null ? age > UNREADABLE_AFTER_MS : holder.isHere && !isAlive(holder.pid);
}

/** The process that a lock's file names, and whether it is one of this machine; null: it names none. */
export function holderOf(path: string): { pid: number; isHere: boolean } | null {
  try {
    const { pid, host } = JSON.parse(readFileSync(path, 'utf8')) as { pid: number; host: string };
    return Number.isInteger(pid) ? { pid, isHere: host === hostname() } : null;
  } catch {
    return null;
  }
}

/** Says that a lock's holder lives. */
export function touchLockFile(path: string): void {
  try {
    utimesSync(path, new Date(), new Date());
  } catch {
    // It was taken over, or its folder is gone: there is nothing to keep.
  }
}
