import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../base/build-directory.js';
import { createLockFile, holderOf, touchLockFile } from '../../base/process-lock.js';
import { SkeinError } from '../../base/skein-error.js';
import { writeProblem } from '../../base/system-problem.js';

/** An error for a folder that this server cannot have. */
export class FolderError extends SkeinError {
  override name = 'FolderError';
  override readonly code = 'SKEIN_FILES_FOLDER';
}

/** Milliseconds between two signs of life, and after which a server of another machine that gives none is gone. */
const SIGN_MS = 10_000;
const GONE_MS = 60_000;
const NAME = 'in-use-by';

/**
 * Keeps a folder for one server: two of them would both continue its batches. The lock's file names the
 * process: on this machine the lock checks whether that lives, on others it relies on the file's time.
 */
export class FolderLock {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;

  private constructor(path: string) {
    this.#path = path;
    this.#timer = setInterval(() => touchLockFile(path), SIGN_MS).unref();
  }

  /** Makes the folder, where it is not there, and takes it. @throws FolderError */
  static take(folder: string): FolderLock {
    const path = join(folder, NAME);
    if (!created(folder, path)) {
      throw new FolderError(
        `The folder ${folder} is in use by another server (${path} names it); each server needs a folder of its own.`,
      );
    }
    return new FolderLock(path);
  }

  release(): void {
    clearInterval(this.#timer);
    rmSync(this.#path, { force: true });
  }
}

/** Makes the folder and its lock's file; false where another server has it. @throws FolderError */
function created(folder: string, path: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!isTaken(path)) rmSync(path, { force: true });
    // Of two servers that start at once, one makes the file.
    return createLockFile(path, 0o600);
  } catch (error) {
    throw new FolderError(`The folder ${folder} cannot be used: ${writeProblem(error)}`);
  }
}

function isTaken(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const holder = holderOf(path);
  // In a container the server before this one had the same number.
  if (holder?.isHere) return holder.pid !== process.pid && isAlive(holder.pid);
  return Date.now() - found.mtimeMs < GONE_MS;
}
