import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from '../../../base/package-info.js';

/** A system, as Node.js names it. */
export interface System {
  platform: string;
  arch: string;
  /** Asked for only on Linux, since it takes some time to find out. */
  libc(): 'glibc' | 'musl';
}

const HERE: System = { platform: process.platform, arch: process.arch, libc: libcOfProcess };

/** Platforms that have a package of npm with their addon; tools/build-addon/platforms.mjs makes them. */
const PACKAGED: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['glibc', 'musl'],
  'linux-arm64': ['glibc', 'musl'],
  'darwin-arm64': [],
};

/**
 * Finds the compiled addon: that of build/Release (compiled here) goes before one in prebuilds/ (compiled ahead, in the package
 * itself), and this before the package of npm for the platform. @returns its path @throws Error with a reason
 */
export function findAddon(root = packageRoot(), system = HERE): string {
  const require = createRequire(join(root, 'package.json'));
  const { resolve } = createRequire(import.meta.url)('node-gyp-build') as { resolve(root: string): string };
  let reason: unknown;
  try {
    return resolve(root);
  } catch (error) {
    reason = error;
  }
  const found = addonPackages(system).flatMap((name) => {
    try {
      return [{ name, path: require.resolve(`${name}/skein.node`) }];
    } catch {
      return [];
    }
  });
  if (found.length === 1) return found[0]!.path;
  if (found.length > 1) {
    // npm installs one; other package managers install those of both C libraries.
    const end = `-${system.libc()}`;
    return (found.find(({ name }) => name.endsWith(end)) ?? found[0]!).path;
  }
  throw new Error(`it was not compiled, and ${missingPackage(system)}`, { cause: reason });
}

/** Names of the packages that may have this system's addon. */
export function addonPackages({ platform, arch }: Pick<System, 'platform' | 'arch'>): string[] {
  const libraries = PACKAGED[`${platform}-${arch}`];
  if (libraries === undefined) return [];
  const name = `@skein/native-${platform}-${arch}`;
  return libraries.length === 0 ? [name] : libraries.map((libc) => `${name}-${libc}`);
}

function missingPackage(system: System): string {
  const names = addonPackages(system);
  if (names.length === 0) return `there is no package of it for ${system.platform}-${system.arch}`;
  const name = names.length === 1 ? names[0]! : names.find((one) => one.endsWith(`-${system.libc()}`))!;
  return `${name} is not installed`;
}

/** As npm finds it out when it installs. */
function libcOfProcess(): 'glibc' | 'musl' {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork?: boolean };
  const before = report.excludeNetwork;
  // Otherwise the names of all open connections would be looked up.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  if (before !== undefined) report.excludeNetwork = before;
  return header?.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}
