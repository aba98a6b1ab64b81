import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelConfig } from '../../models/repository/model-config.js';
import { BackendError } from './backend.js';

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

/**
 * Threads of one instance: 1 unless its configuration says more, since several instances and batches run at
 * the same time. @throws BackendError
 */
export function threadsOf({ parameters }: ModelConfig, name: string): number {
  const text = parameters[name]?.string_value;
  if (text === undefined) return 1;
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new BackendError(
    `parameters.${name} is ${JSON.stringify(text)}; a whole number from 1 to 999 is expected.`,
  );
}
