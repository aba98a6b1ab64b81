import { createRequire } from 'node:module';
import { packageRoot } from '../package-info.js';
import type { NativeAddon } from './addon.js';

/** The compiled addon is not there, or does not load on this machine. */
export class AddonError extends Error {
  override name = 'AddonError';
}

let loaded: NativeAddon | undefined;

/** The compiled addon, loaded once per thread. Throws an AddonError that says what to do where it is missing. */
export function loadAddon(): NativeAddon {
  loaded ??= load();
  return loaded;
}

/** Whether the compiled addon is there and loads. */
export function nativeAddonAvailable(): boolean {
  try {
    loadAddon();
    return true;
  } catch {
    return false;
  }
}

function load(): NativeAddon {
  const root = packageRoot();
  try {
    const loadFrom = createRequire(import.meta.url)('node-gyp-build') as (root: string) => NativeAddon;
    return loadFrom(root);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new AddonError(
      `The native addon of skein could not be loaded (${reason}); install a C++20 compiler, make and Python 3 and run "npm rebuild skein" (in a checkout: "npm run build:native").`,
    );
  }
}
