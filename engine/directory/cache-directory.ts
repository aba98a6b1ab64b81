import { join, resolve } from 'node:path';
import { homeFolder } from '../../base/home-folder.js';

/** Folder of built engines and of installed packages: SKEIN_CACHE_DIR, or `skein` in the user's cache. */
export function defaultCacheDirectory(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  if (env.SKEIN_CACHE_DIR) return resolve(env.SKEIN_CACHE_DIR);
  return join(env.XDG_CACHE_HOME || join(homeFolder(), '.cache'), 'skein');
}
