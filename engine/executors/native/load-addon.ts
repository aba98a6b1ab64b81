import { createRequire } from 'node:module';
import { messageOf } from '../../../base/error-text.js';
import { packageRoot } from '../../../base/package-info.js';
import { SkeinError } from '../../../base/skein-error.js';
import type { NativeAddon } from './addon.js';

/**
 * Grows with every change of NativeAddon or of what is handed to it, together with kAddonAbi in addon.cpp: an addon
 * that was compiled from other sources is refused.
 */
export const ADDON_ABI = 12;

/** The compiled addon is not there, does not load on this machine, or was compiled from other sources. */
export class AddonError extends SkeinError {
  override name = 'AddonError';
  override readonly code = 'SKEIN_ADDON';
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
  return checkedAddon(() => {
    const loadFrom = createRequire(import.meta.url)('node-gyp-build') as (root: string) => NativeAddon;
    return loadFrom(root);
  });
}

/** What `open` returns. Throws an AddonError where it throws, and where the addon has another ABI. */
export function checkedAddon(open: () => NativeAddon): NativeAddon {
  const addon = opened(open);
  if (addon.abi === ADDON_ABI) return addon;
  throw new AddonError(
    `The native addon of skein was compiled from another version of its sources (ABI ${addon.abi ?? 1}, expected ${ADDON_ABI}); run "npm rebuild skein" (in a checkout: "npm run build:native").`,
  );
}

function opened(open: () => NativeAddon): NativeAddon {
  try {
    return open();
  } catch (error) {
    const [reason] = messageOf(error).split('\n');
    throw new AddonError(
      `The native addon of skein could not be loaded (${reason}); install a C++20 compiler, make and Python 3 and run "npm rebuild skein" (in a checkout: "npm run build:native").`,
      { cause: error },
    );
  }
}
