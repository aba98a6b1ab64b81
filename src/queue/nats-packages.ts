import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { defaultCacheDirectory } from '../../base/home-folder.js';
import type { NatsModules } from '../../cluster/nats/nats-modules.js';
import { UsageError } from '../errors/usage-error.js';

/** Packages that the work queue needs, with the versions that `skein setup nats` installs. Those from 3.4 on need Node.js 22. */
export const NATS_PACKAGES = {
  '@nats-io/transport-node': '3.3.1',
  '@nats-io/jetstream': '3.3.1',
} as const;

const MISSING = `The work queue needs the packages of NATS, which are not here: "skein setup nats" installs them, or "npm install ${Object.entries(
  NATS_PACKAGES,
)
  .map(([name, version]) => `${name}@${version}`)
  .join(' ')}" beside your program.`;

/** The folder of `skein setup nats`: one for each user. */
export function natsSetupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'nats');
}

/** Loads the packages: the program's own go before those of `skein setup nats`. @throws UsageError where they are nowhere */
export function loadNats(): NatsModules {
  const { SKEIN_CACHE_DIR: _, ...others } = process.env;
  const folders = [natsSetupFolder(), natsSetupFolder(defaultCacheDirectory(others))];
  const setups = folders.map((folder) => join(folder, 'package.json')).filter((file) => existsSync(file));
  for (const origin of [import.meta.url, join(process.cwd(), 'package.json'), ...setups]) {
    const require = createRequire(origin);
    if (!Object.keys(NATS_PACKAGES).every((name) => resolves(require, name))) continue;
    return { nats: require('@nats-io/transport-node'), jetstream: require('@nats-io/jetstream') };
  }
  throw new UsageError(MISSING);
}

function resolves(require: NodeJS.Require, name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}
