import { type SetupOptions, setUpPackages } from '../../base/setup-packages.js';
import { UsageError } from '../errors/usage-error.js';

export interface OptionalPackages {
  /** Of the folder's package.json. */
  name: string;
  /** Versions by names. */
  packages: Readonly<Record<string, string>>;
  folder: string;
  /** A program that fails where they cannot be used; default: it loads them. */
  trial?: string;
}

/** Installs packages of npm that some option needs into a folder of the user's cache. @throws UsageError; the reason of `signal` */
export async function installPackages(
  { name, packages, folder, trial }: OptionalPackages,
  options: SetupOptions,
): Promise<{ folder: string; isNew: boolean }> {
  const loads = Object.keys(packages).map((one) => `require('${one}')`);
  const failure = (message: string) => new UsageError(message);
  const setup = { target: folder, name, packages, trial: trial ?? loads.join(';'), failure };
  return { folder, isNew: await setUpPackages(setup, options) };
}
