import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { defaultCacheDirectory } from './home-folder.js';

/**
 * Finds npm packages that this one needs only for some option: those next to it go before the working
 * directory's, and these before what `skein setup` has put into the user's cache. Loads nothing. null: one of
 * them is missing everywhere.
 * @param setupFolder of `skein setup` in a cache directory; null where that installs no such packages @param cacheDirectory default: the user's
 */
export function findPackages(
  names: readonly string[],
  setupFolder: ((cacheDirectory: string) => string) | null,
  cacheDirectory?: string,
): NodeJS.Require | null {
  const { SKEIN_CACHE_DIR: _, ...others } = process.env;
  const caches =
    cacheDirectory === undefined
      ? [defaultCacheDirectory(), defaultCacheDirectory(others)]
      : [cacheDirectory];
  const setups = (setupFolder === null ? [] : caches.map(setupFolder))
    .map((folder) => join(folder, 'package.json'))
    .filter((file) => existsSync(file));
  for (const origin of [...appOrigins(), ...setups]) {
    const require = createRequire(origin);
    if (names.every((name) => resolves(require, name))) return require;
  }
  return null;
}

/** The folder of a package among the modules of the program, or those of the working directory (a linked package); null: it is not there. */
export function packageOfApp(name: string): string | null {
  for (const origin of appOrigins()) {
    try {
      return dirname(createRequire(origin).resolve(`${name}/package.json`));
    } catch {
      // It is not installed there.
    }
  }
  return null;
}

/** Seen from this package (npm puts an app's modules next to it) and from the working directory. */
const appOrigins = () => [import.meta.url, join(process.cwd(), 'package.json')];

function resolves(require: NodeJS.Require, name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}
