import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultCacheDirectory } from '../../../base/home-folder.js';
import { packageOfApp } from '../../../base/optional-packages.js';

/** The packages in the order of search: the one that can use a GPU, then its replacement. */
export const TENSORFLOW_PACKAGES = ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node'] as const;
export type TensorFlowPackage = (typeof TENSORFLOW_PACKAGES)[number];

/** Version that `skein setup tensorflow` installs, with which this executor is tested. */
export const TENSORFLOW_PACKAGE_VERSION = '4.22.0';

/** Place of an installed TensorFlow package. */
export interface TensorFlowInstallation {
  package: TensorFlowPackage;
  /** The package's own folder. */
  folder: string;
  /** app: among the modules of the program that runs; setup: put there by `skein setup tensorflow`. */
  from: 'app' | 'setup';
}

/** Record that `skein setup tensorflow` writes last: without it an installation counts as missing. */
export interface SetupRecord {
  package: TensorFlowPackage;
  packageVersion: string;
  /** Version of libtensorflow. */
  tensorflow: string;
  /** The library that was linked; null: the package's own download. */
  library: string | null;
  /** True if TensorFlow saw a GPU then. */
  gpu: boolean;
}

const RECORD_NAME = 'skein-setup.json';

/** Folder of `skein setup tensorflow`: one for each user and kind of machine. */
export function setupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'tensorflow', `${process.platform}-${process.arch}`);
}

export const recordPath = (folder: string) => join(folder, RECORD_NAME);

export const packageFolder = (folder: string, name: TensorFlowPackage) => join(folder, 'node_modules', name);

/** Record of a complete setup in the folder; null if there is none, or if the library that it linked is gone. */
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
 * Finds an installation: the program's own, else that of `skein setup tensorflow`. One whose native part was never
 * built (npm's --ignore-scripts) is passed over. null: there is none. Loads nothing.
 */
export function findInstallation(cacheDirectory?: string): TensorFlowInstallation | null {
  for (const name of TENSORFLOW_PACKAGES) {
    const folder = packageOfApp(name);
    if (folder !== null && hasBinding(folder)) return { package: name, folder, from: 'app' };
  }
  for (const folder of setupFolders(cacheDirectory)) {
    const record = readSetupRecord(folder);
    if (record === null) continue;
    return { package: record.package, folder: packageFolder(folder, record.package), from: 'setup' };
  }
  return null;
}

/** Folders to search: that of the named cache first, then of the user's own. */
function setupFolders(cacheDirectory: string | undefined): string[] {
  if (cacheDirectory !== undefined) return [setupFolder(cacheDirectory)];
  const { SKEIN_CACHE_DIR: _, ...others } = process.env;
  return [...new Set([setupFolder(), setupFolder(defaultCacheDirectory(others))])];
}

/**
 * True if TensorFlow sees a GPU there, as far as known without loading it: the setup has tried; an app's own package is
 * judged by its name.
 */
export function seesGpu({ package: name, folder, from }: TensorFlowInstallation): boolean {
  if (from === 'setup') return readSetupRecord(join(folder, '..', '..', '..'))?.gpu === true;
  return name === TENSORFLOW_PACKAGES[0] && existsSync('/dev/nvidiactl');
}

/** True if the native part was built; node-pre-gyp puts it into a folder for each version of Node-API. */
function hasBinding(folder: string): boolean {
  for (let version = Number(process.versions.napi); version >= 3; version--) {
    if (existsSync(join(folder, 'lib', `napi-v${version}`, 'tfjs_binding.node'))) return true;
  }
  return false;
}
