import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultCacheDirectory } from '../../../base/home-folder.js';
import { packageOfApp } from '../../../base/optional-packages.js';

export const ONNX_PACKAGE = 'onnxruntime-node';

/** What `skein setup onnx` installs: the version that this backend is tested with. */
export const ONNX_PACKAGE_VERSION = '1.30.0';

/** Where the package lies. */
export interface OnnxInstallation {
  /** The package's own folder. */
  folder: string;
  version: string;
  /** app: among the modules of the program that runs; setup: put there by `skein setup onnx`. */
  from: 'app' | 'setup';
}

/** The folder of `skein setup onnx`: one for each user and kind of machine. */
export function onnxSetupFolder(cacheDirectory = defaultCacheDirectory()): string {
  return join(cacheDirectory, 'onnxruntime', `${process.platform}-${process.arch}`);
}

export const onnxPackageFolder = (folder: string) => join(folder, 'node_modules', ONNX_PACKAGE);

/** The program's own package goes before that of `skein setup onnx`. null: there is neither. Loads nothing. */
export function findOnnxRuntime(cacheDirectory?: string): OnnxInstallation | null {
  const own = packageOfApp(ONNX_PACKAGE);
  const app = own === null ? null : packageAt(own);
  if (app !== null) return { ...app, from: 'app' };
  const { SKEIN_CACHE_DIR: _, ...others } = process.env;
  const folders =
    cacheDirectory === undefined
      ? [onnxSetupFolder(), onnxSetupFolder(defaultCacheDirectory(others))]
      : [onnxSetupFolder(cacheDirectory)];
  for (const folder of folders) {
    const installed = packageAt(onnxPackageFolder(folder));
    if (installed !== null) return { ...installed, from: 'setup' };
  }
  return null;
}

function packageAt(folder: string): Pick<OnnxInstallation, 'folder' | 'version'> | null {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return null;
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return { folder, version };
}
