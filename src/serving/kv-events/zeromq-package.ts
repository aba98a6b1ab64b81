import { join } from 'node:path';
import { defaultCacheDirectory } from '../../../base/home-folder.js';
import { findPackages } from '../../../base/optional-packages.js';
import type { ZeroMq } from '../../../cluster/zeromq/zeromq.js';

/** The package, with the version that `skein setup zeromq` installs. */
export const ZEROMQ_PACKAGE = { zeromq: '6.8.0' } as const;

export const ZEROMQ_MISSING =
  'Events of the KV cache go over ZeroMQ, whose package is not here: "skein setup zeromq" installs it, or "npm install zeromq@6" in the folder of your program.';

/** The folder of `skein setup zeromq`: one for each user. */
export function zeroMqSetupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'zeromq');
}

/** null: it is not there. */
export function loadZeroMq(cacheDirectory?: string): ZeroMq | null {
  const require = findPackages(Object.keys(ZEROMQ_PACKAGE), zeroMqSetupFolder, cacheDirectory);
  return require === null ? null : (require('zeromq') as ZeroMq);
}
