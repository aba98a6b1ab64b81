import { createRequire } from 'node:module';
import { messageOf } from '../../../base/error-text.js';
import { SkeinError } from '../../../base/skein-error.js';
import type { NativeAddon } from './addon.js';
import { type FoundAddons, findAddons } from './find-addon.js';

/**
 * Number of the interface to the addon, kAddonAbi in addon.cpp. It grows with every change of NativeAddon or of its
 * arguments, so that an addon compiled from other sources is refused.
 */
export const ADDON_ABI = 43;

/** The compiled addon is missing, does not load on this machine, or was compiled from other sources. */
export class AddonError extends SkeinError {
  override name = 'AddonError';
  override readonly code = 'SKEIN_ADDON';
}

let loaded: NativeAddon | undefined;

/** Loads the compiled addon, once per thread. Throws an AddonError that says what to do if it is missing. */
export function loadAddon(): NativeAddon {
  loaded ??= load();
  return loaded;
}

/** True if the compiled addon exists and loads. */
export function nativeAddonAvailable(): boolean {
  try {
    loadAddon();
    return true;
  } catch {
    return false;
  }
}

function load(): NativeAddon {
  const require = createRequire(import.meta.url);
  return firstThatLoads(findAddons(), (path) => require(path) as NativeAddon);
}

/** Returns the first addon that loads and has the ABI. @throws AddonError of the first one, or with the reason why there is none */
export function firstThatLoads(
  { paths, reasons }: FoundAddons,
  open: (path: string) => NativeAddon,
): NativeAddon {
  let failed: unknown;
  for (const path of paths) {
    try {
      return checkedAddon(() => open(path));
    } catch (error) {
      failed ??= error;
    }
  }
  throw failed ?? notLoaded(reasons.join('; '));
}

/** Returns the addon that `open` loads. Throws an AddonError if it fails or the addon has another ABI. */
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
    throw notLoaded(messageOf(error).split('\n')[0]!, error);
  }
}

function notLoaded(reason: string, cause?: unknown): AddonError {
  return new AddonError(
    `The native addon of skein could not be loaded (${reason}); install a C++20 compiler, make and Python 3 and run "npm rebuild skein" (in a checkout: "npm run build:native").`,
    cause === undefined ? undefined : { cause },
  );
}
