import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Home of users that have none, by Debian's convention: no process can make this folder. */
export const NO_HOME = '/nonexistent';

/**
 * The user's home folder. A container may run as a number that is no user, without HOME: Node.js throws there, though
 * nothing may ever be read or written below this folder.
 */
export function homeFolder(find: () => string = homedir): string {
  try {
    return find();
  } catch {
    return NO_HOME;
  }
}

/** Folder of built engines and of installed packages: SKEIN_CACHE_DIR, or `skein` in the user's cache. */
export function defaultCacheDirectory(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  if (env.SKEIN_CACHE_DIR) return resolve(env.SKEIN_CACHE_DIR);
  return join(env.XDG_CACHE_HOME || join(homeFolder(), '.cache'), 'skein');
}
