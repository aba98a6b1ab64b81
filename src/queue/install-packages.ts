import { type SetupOptions, setUpPackages } from '../../base/setup-packages.js';
import { UsageError } from '../errors/usage-error.js';
import { NATS_PACKAGES, natsSetupFolder } from './nats-packages.js';

/** Installs what the work queue needs into a folder of the user's cache. @throws UsageError; the reason of `signal` */
export async function installNats(
  options: SetupOptions & { cacheDirectory?: string | undefined },
): Promise<{ folder: string; isNew: boolean }> {
  const folder = natsSetupFolder(options.cacheDirectory);
  const setup = {
    target: folder,
    name: 'skein-nats',
    packages: NATS_PACKAGES,
    trial: Object.keys(NATS_PACKAGES)
      .map((name) => `require('${name}')`)
      .join(';'),
    failure: (message: string) => new UsageError(message),
  };
  return { folder, isNew: await setUpPackages(setup, options) };
}
