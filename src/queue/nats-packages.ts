import { join } from 'node:path';
import { defaultCacheDirectory } from '../../base/home-folder.js';
import { findPackages } from '../../base/optional-packages.js';
import type { NatsModules } from '../../cluster/nats/work-stream.js';
import { UsageError } from '../errors/user-errors.js';

/** Packages that the work queue needs, with the versions that `skein setup nats` installs. Those from 3.4 on need Node.js 22. */
export const NATS_PACKAGES = {
  '@nats-io/transport-node': '3.3.1',
  '@nats-io/jetstream': '3.3.1',
  '@nats-io/kv': '3.3.1',
} as const;

const MISSING = `The work queue needs the packages of NATS, which are not here: "skein setup nats" installs them, or "npm install ${Object.entries(
  NATS_PACKAGES,
)
  .map(([name, version]) => `${name}@${version}`)
  .join(' ')}" in the folder of your program.`;

/** The folder of `skein setup nats`: one for each user. */
export function natsSetupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'nats');
}

/** Loads the packages. @throws UsageError where they are nowhere */
export function loadNats(): NatsModules {
  const require = findPackages(Object.keys(NATS_PACKAGES), natsSetupFolder);
  if (require === null) throw new UsageError(MISSING);
  return {
    nats: require('@nats-io/transport-node'),
    jetstream: require('@nats-io/jetstream'),
    kv: require('@nats-io/kv'),
  };
}
