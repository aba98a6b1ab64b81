import { type SetupOptions, setUpPackages } from '../../../base/setup-packages.js';
import { UsageError } from '../../errors/usage-error.js';
import { ZEROMQ_PACKAGE, zeroMqSetupFolder } from './zeromq-package.js';

/** Installs what events of the KV cache need into a folder of the user's cache. @throws UsageError; the reason of `signal` */
export async function installZeroMq(
  options: SetupOptions & { cacheDirectory?: string | undefined },
): Promise<{ folder: string; isNew: boolean }> {
  const folder = zeroMqSetupFolder(options.cacheDirectory);
  const setup = {
    target: folder,
    name: 'skein-zeromq',
    packages: ZEROMQ_PACKAGE,
    // Its addon comes compiled, for each system.
    trial: "new (require('zeromq').Publisher)().close()",
    failure: (message: string) => new UsageError(message),
  };
  return { folder, isNew: await setUpPackages(setup, options) };
}
