import type * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Mode of the folder and of the parents that are made: no other user reads what prompts have left. */
export const FOLDER_MODE = 0o700;
/** Folders that are made at most, one in the other. */
const MAX_MADE = 64;

/**
 * Makes a folder, and those above it that are not there. Node.js's own way (`recursive`) never comes back where the system says of a
 * folder in one that exists that it does not exist, as in /proc.
 * @throws Error where that cannot be, by the system's own words
 */
export function makeFolder(path: string, files: Pick<typeof fs, 'mkdirSync' | 'statSync'>): void {
  const missing: string[] = [];
  for (let at = resolve(path); !exists(at, files); at = dirname(at)) {
    if (missing.length === MAX_MADE || at === dirname(at))
      throw new Error(`${MAX_MADE} folders above it are not there`);
    missing.push(at);
  }
  for (const folder of missing.reverse()) {
    try {
      files.mkdirSync(folder, { mode: FOLDER_MODE });
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isFolder(folder, files)) throw error;
    }
  }
  if (missing.length === 0 && !isFolder(path, files)) throw new Error('it is no folder');
}

function exists(path: string, files: Pick<typeof fs, 'statSync'>): boolean {
  return files.statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isFolder(path: string, files: Pick<typeof fs, 'statSync'>): boolean {
  return files.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
