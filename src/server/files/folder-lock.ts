import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { SkeinError } from '../../../base/skein-error.js';
import { writeProblem } from '../../../base/system-problem.js';

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
 * Keeps a folder for one server: two of them would both go on with its batches. The lock's file names the process; on
 * this machine it is looked whether that lives, for others the file's time tells.
 */
export class FolderLock {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;

  private constructor(path: string) {
    this.#path = path;
    const sign = () => {
      try {
        utimesSync(path, new Date(), new Date());
      } catch {
        // Without the folder there is nothing to keep.
      }
    };
    this.#timer = setInterval(sign, SIGN_MS).unref();
  }

  /** Makes the folder, where it is not there, and takes it. @throws FolderError */
  static take(folder: string): FolderLock {
    const path = join(folder, NAME);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if (!isTaken(path)) rmSync(path, { force: true });
      // Of two servers that start at once, one makes the file.
      const file = openSync(path, 'wx', 0o600);
      writeSync(file, JSON.stringify({ pid: process.pid, host: hostname() }));
      closeSync(file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST' && isTaken(path)) {
        throw new FolderError(
          `The folder ${folder} is in use by another server (${path} names it); each server needs a folder of its own.`,
        );
      }
      throw new FolderError(`The folder ${folder} cannot be used: ${writeProblem(error)}`);
    }
    return new FolderLock(path);
  }

  release(): void {
    clearInterval(this.#timer);
    rmSync(this.#path, { force: true });
  }
}

function isTaken(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const isFresh = Date.now() - found.mtimeMs < GONE_MS;
  try {
    const { pid, host } = JSON.parse(readFileSync(path, 'utf8')) as { pid: number; host: string };
    // In a container the server before this one had the same number.
    return host === hostname() ? pid !== process.pid && lives(pid) : isFresh;
  } catch {
    return isFresh;
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
