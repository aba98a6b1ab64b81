import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type SetupOptions, setUpPackages } from '../../../base/setup-packages.js';
import { BackendError } from '../backend.js';
import { ONNX_PACKAGE, ONNX_PACKAGE_VERSION, onnxPackageFolder, onnxSetupFolder } from './installation.js';

export interface InstallOnnxOptions extends SetupOptions {
  cacheDirectory?: string | undefined;
}

export interface InstalledOnnx {
  folder: string;
  version: string;
  /** False: it was there already. */
  isNew: boolean;
}

/**
 * Installs onnxruntime-node into a folder of the user's cache, without its install script, which would download libraries for GPUs,
 * and without the binaries of other platforms. @throws BackendError; the reason of `signal`
 */
export async function installOnnxRuntime(options: InstallOnnxOptions): Promise<InstalledOnnx> {
  const folder = onnxSetupFolder(options.cacheDirectory);
  const setup = {
    target: folder,
    name: 'skein-onnxruntime',
    packages: { [ONNX_PACKAGE]: ONNX_PACKAGE_VERSION },
    variables: { ONNXRUNTIME_NODE_INSTALL: 'skip' },
    trim: (aside: string) => removeOtherPlatforms(onnxPackageFolder(aside)),
    trial: `require('${ONNX_PACKAGE}').InferenceSession.create`,
    failure: (message: string, more?: ErrorOptions) => new BackendError(message, more),
  };
  return { folder, version: ONNX_PACKAGE_VERSION, isNew: await setUpPackages(setup, options) };
}

/** bin/napi-vN/PLATFORM/ARCH: the package brings all of them, and one is needed. */
function removeOtherPlatforms(folder: string): void {
  const bin = join(folder, 'bin');
  for (const version of readdirSync(bin)) {
    for (const platform of readdirSync(join(bin, version))) {
      for (const arch of readdirSync(join(bin, version, platform))) {
        if (platform === process.platform && arch === process.arch) continue;
        rmSync(join(bin, version, platform, arch), { recursive: true, force: true });
      }
    }
  }
}
