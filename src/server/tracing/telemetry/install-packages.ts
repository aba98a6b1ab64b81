import { type SetupOptions, setUpPackages } from '../../../../base/setup-packages.js';
import { UsageError } from '../../../errors/usage-error.js';
import { TRACING_PACKAGES, tracingSetupFolder } from './packages.js';

/** Installs what tracing needs into a folder of the user's cache. @throws UsageError; the reason of `signal` */
export async function installTracing(
  options: SetupOptions & { cacheDirectory?: string | undefined },
): Promise<{ folder: string; isNew: boolean }> {
  const folder = tracingSetupFolder(options.cacheDirectory);
  const setup = {
    target: folder,
    name: 'skein-opentelemetry',
    packages: TRACING_PACKAGES,
    trial: Object.keys(TRACING_PACKAGES)
      .map((name) => `require('${name}')`)
      .join(';'),
    failure: (message: string) => new UsageError(message),
  };
  return { folder, isNew: await setUpPackages(setup, options) };
}
