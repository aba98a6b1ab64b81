import { readlinkSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';
import { SkeinError } from '../../base/skein-error.js';

/** Where files of a checkpoint may lie, in this thread; null: anywhere. */
let folder: string | null = null;

/** From now on this thread reads files of checkpoints below a folder alone, whatever links lead elsewhere. @param path without links; null: anywhere */
export function openOnlyBelow(path: string | null): void {
  folder = path;
}

/** An error for a file that lies outside of the folder below which files may be read. */
export class OutsideError extends SkeinError {
  override readonly code = 'SKEIN_OUTSIDE';
  override name = 'OutsideError';
}

/**
 * Holds an open file against the folder: it is what was opened that counts, since names may lead elsewhere a moment later.
 * @throws OutsideError
 */
export function checkBelow(fd: number, path: string, ino: number): void {
  if (folder === null || isBelow(folder, openedPath(fd, path, ino))) return;
  throw new OutsideError(`${path}: lies outside of the folder from which files may be read.`);
}

/** The path lies in the folder, and is not the folder itself. */
export function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Path of an open file. Where the system does not tell it: of that name, as long as the same file has it. */
function openedPath(fd: number, path: string, ino: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    const real = realpathSync(path);
    return statSync(real).ino === ino ? real : '';
  }
}
