import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
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

/** Addons that may be loaded, the first that loads. */
export interface FoundAddons {
  paths: string[];
  /** Why others may not, and what is missing; sentences without their first letter and their end. */
  reasons: string[];
}

/**
 * Finds the compiled addon: that of build/Release (compiled here) goes before one in prebuilds/ (compiled ahead, in the package
 * itself), and this before the package of npm for the platform.
 */
export function findAddons(root = packageRoot(), system = HERE): FoundAddons {
  const own = ofPackageItself(root);
  const packages = ofOtherPackages(root, system);
  const [paths, reasons] = [
    [...own.paths, ...packages.paths],
    [...own.reasons, ...packages.reasons],
  ];
  return { paths, reasons: paths.length > 0 || reasons.length > 0 ? reasons : missing(root, system) };
}

/** What node-gyp-build chooses. */
function ofPackageItself(root: string): FoundAddons {
  const { resolve } = createRequire(import.meta.url)('node-gyp-build') as { resolve(root: string): string };
  try {
    return checked(resolve(root));
  } catch {
    return { paths: [], reasons: [] }; // there is none
  }
}

/** npm installs the package of one C library; other package managers install those of both. */
function ofOtherPackages(root: string, system: System): FoundAddons {
  const require = createRequire(join(root, 'package.json'));
  const found = addonPackages(system).flatMap((name) => {
    try {
      return [{ name, path: require.resolve(`${name}/skein.node`) }];
    } catch {
      return [];
    }
  });
  if (found.length === 0) return { paths: [], reasons: [] };
  const end = found.length === 1 ? '' : `-${system.libc()}`;
  const { name, path } = found.find((one) => one.name.endsWith(end)) ?? found[0]!;
  const [version, wanted] = [versionIn(dirname(path)), versionIn(root)];
  if (version !== wanted) {
    const reason = `${name} is of version ${version}, and skein of ${wanted}: "npm install ${name}@${wanted}" brings the one that fits`;
    return { paths: [], reasons: [reason] };
  }
  return checked(path);
}

/** An addon that is cut off would end the process where it is loaded: its length is known. */
function checked(path: string): FoundAddons {
  const { bytes } = JSON.parse(textOf(path.replace(/\.node$/, '.json'))) as { bytes?: number };
  const { size } = statSync(path);
  if (bytes === undefined || bytes === size) return { paths: [path], reasons: [] };
  return { paths: [], reasons: [`${path} has ${size} bytes and not ${bytes}, so it is damaged`] };
}

/** An addon without a stamp was built elsewhere and is used as it is. */
function textOf(stamp: string): string {
  try {
    return readFileSync(stamp, 'utf8');
  } catch {
    return '{}';
  }
}

function versionIn(folder: string): string {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      version?: string;
    };
    return version ?? 'none';
  } catch {
    return 'none';
  }
}

/** Names of the packages that may have this system's addon. */
export function addonPackages({ platform, arch }: Pick<System, 'platform' | 'arch'>): string[] {
  const libraries = PACKAGED[`${platform}-${arch}`];
  if (libraries === undefined) return [];
  const name = `@skein/native-${platform}-${arch}`;
  return libraries.length === 0 ? [name] : libraries.map((libc) => `${name}-${libc}`);
}

/** A checkout names no packages of its addon, and what is published does. */
function missing(root: string, system: System): string[] {
  const names = addonPackages(system);
  if (names.length === 0)
    return [`it was not compiled, and there is no package of it for ${system.platform}-${system.arch}`];
  const name = names.length === 1 ? names[0]! : names.find((one) => one.endsWith(`-${system.libc()}`))!;
  const { optionalDependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    optionalDependencies?: Record<string, string>;
  };
  const version = optionalDependencies[name];
  if (version === undefined) return ['it was not compiled'];
  return [`it was not compiled, and ${name} is not installed, which "npm install ${name}@${version}" brings`];
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
