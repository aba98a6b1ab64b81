import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { defaultCacheDirectory } from '../../building/engine-cache.js';

/** The packages in the order in which they are looked for: the one that can use a GPU, and what is taken in its place. */
export const TENSORFLOW_PACKAGES = ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node'] as const;
export type TensorFlowPackage = (typeof TENSORFLOW_PACKAGES)[number];

/** What `skein setup tensorflow` installs: the version that this executor is tested with. */
export const TENSORFLOW_PACKAGE_VERSION = '4.22.0';

/** Where a package of TensorFlow lies. */
export interface TensorFlowInstallation {
  package: TensorFlowPackage;
  /** The package's own folder. */
  folder: string;
  /** app: among the modules of the program that runs; setup: put there by `skein setup tensorflow`. */
  from: 'app' | 'setup';
}

/** What `skein setup tensorflow` writes last: without it an installation is not there. */
export interface SetupRecord {
  package: TensorFlowPackage;
  packageVersion: string;
  /** Version of libtensorflow. */
  tensorflow: string;
  /** The library that was linked; null: the package's own download. */
  library: string | null;
  /** Whether TensorFlow saw a GPU then. */
  gpu: boolean;
}

const RECORD_NAME = 'skein-setup.json';

/** The folder of `skein setup tensorflow`: one for each user and kind of machine. */
export function setupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'tensorflow', `${process.platform}-${process.arch}`);
}

export const recordPath = (folder: string) => join(folder, RECORD_NAME);

export const packageFolder = (folder: string, name: TensorFlowPackage) => join(folder, 'node_modules', name);

/** What a complete setup left in the folder; null where there is none, and where the library that it linked is gone. */
export function readSetupRecord(folder: string): SetupRecord | null {
  try {
    const record = JSON.parse(readFileSync(recordPath(folder), 'utf8')) as SetupRecord;
    const isLinked = record.library === null || existsSync(record.library);
    return isLinked && existsSync(packageFolder(folder, record.package)) ? record : null;
  } catch {
    return null;
  }
}

/**
 * The program's own installation goes before that of `skein setup tensorflow`; one whose native part was never built
 * (npm's --ignore-scripts) is passed over. null: there is neither. Loads nothing.
 */
export function findInstallation(cacheDirectory?: string): TensorFlowInstallation | null {
  for (const name of TENSORFLOW_PACKAGES) {
    const folder = ofApp(name);
    if (folder !== null && hasBinding(folder)) return { package: name, folder, from: 'app' };
  }
  for (const folder of setupFolders(cacheDirectory)) {
    const record = readSetupRecord(folder);
    if (record === null) continue;
    return { package: record.package, folder: packageFolder(folder, record.package), from: 'setup' };
  }
  return null;
}

/** A cache that was named is looked into first, then the user's own. */
function setupFolders(cacheDirectory: string | undefined): string[] {
  if (cacheDirectory !== undefined) return [setupFolder(cacheDirectory)];
  const { SKEIN_CACHE_DIR: _, ...others } = process.env;
  return [...new Set([setupFolder(), setupFolder(defaultCacheDirectory(others))])];
}

/**
 * Whether TensorFlow sees a GPU there, as far as can be said without loading it: the setup has tried, of an app's own
 * package the name says whether it could.
 */
export function seesGpu({ package: name, folder, from }: TensorFlowInstallation): boolean {
  if (from === 'setup') return readSetupRecord(join(folder, '..', '..', '..'))?.gpu === true;
  return name === TENSORFLOW_PACKAGES[0] && existsSync('/dev/nvidiactl');
}

/** Seen from this package (npm puts an app's modules beside it) and from the working directory (a linked package). */
function ofApp(name: TensorFlowPackage): string | null {
  for (const origin of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      return dirname(createRequire(origin).resolve(`${name}/package.json`));
    } catch {
      // Not there.
    }
  }
  return null;
}

/** node-pre-gyp puts it into a folder for each version of Node-API. */
export function hasBinding(folder: string): boolean {
  for (let version = Number(process.versions.napi); version >= 3; version--) {
    if (existsSync(join(folder, 'lib', `napi-v${version}`, 'tfjs_binding.node'))) return true;
  }
  return false;
}
