import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { BackendError } from './backend-error.js';

/** Files of a folder that an error names. */
const MAX_NAMES = 5;

/** The file of a version that has the first of these names. @throws BackendError with the files that are there instead */
export function modelFile(versionDirectory: string, names: readonly string[]): string {
  const found = names.find((name) => existsSync(join(versionDirectory, name)));
  if (found !== undefined) return join(versionDirectory, found);
  const there = namesThere(readdirSync(versionDirectory));
  throw new BackendError(`${versionDirectory} has no ${orList(names)}; ${there}`);
}

/** What lies in a folder, as a part of a sentence. */
export function namesThere(filenames: readonly string[]): string {
  if (filenames.length === 0) return 'nothing is there';
  const named = [...filenames].sort().slice(0, MAX_NAMES).join(', ');
  const more = filenames.length - MAX_NAMES;
  return more > 0
    ? `there are ${named} and ${more} more`
    : `there ${filenames.length === 1 ? 'is' : 'are'} ${named}`;
}

/** `a, b or c` */
export function orList(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
