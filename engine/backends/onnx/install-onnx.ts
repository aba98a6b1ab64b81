import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { discardBuildDirectory, makeBuildDirectory, replaceByBuild } from '../../../base/build-directory.js';
import { messageOf } from '../../../base/error-text.js';
import { runStep } from '../../../base/run-step.js';
import { takeSetupLock } from '../../../base/setup-lock.js';
import { BackendError } from '../backend-error.js';
import {
  findOnnxRuntime,
  ONNX_PACKAGE,
  ONNX_PACKAGE_VERSION,
  onnxPackageFolder,
  onnxSetupFolder,
} from './installation.js';

export interface InstallOnnxOptions {
  /** Make it anew where it is there. */
  force?: boolean | undefined;
  cacheDirectory?: string | undefined;
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
  onStep: (text: string) => void;
}

export interface InstalledOnnx {
  folder: string;
  version: string;
  /** False: it was there already. */
  isNew: boolean;
}

const failure = (message: string) => new BackendError(message);

/**
 * Installs onnxruntime-node into a folder of the user's cache, without its install script, which would download libraries for GPUs,
 * and without the binaries of other platforms. It is made in a folder aside, loaded by a process of its own, and appears by one rename.
 * @throws BackendError; the reason of `signal`
 */
export async function installOnnxRuntime(options: InstallOnnxOptions): Promise<InstalledOnnx> {
  const { force, cacheDirectory, onStep, signal } = options;
  const target = onnxSetupFolder(cacheDirectory);
  const lock = await takeSetupLock(target, { onStep, signal, failure });
  try {
    const present = force ? null : findOnnxRuntime(cacheDirectory);
    if (present?.from === 'setup' && present.version === ONNX_PACKAGE_VERSION) {
      return { folder: target, version: present.version, isNew: false };
    }
    const aside = makeBuildDirectory(target);
    try {
      onStep(`installing ${ONNX_PACKAGE} ${ONNX_PACKAGE_VERSION}`);
      await installPackage(aside, options);
      removeOtherPlatforms(onnxPackageFolder(aside));
      onStep('trying it');
      await tryPackage(aside, options);
      if (!replaceByBuild(aside, target)) {
        throw new BackendError(`${target} was made by another process in between; run the command again.`);
      }
    } finally {
      discardBuildDirectory(aside);
    }
    return { folder: target, version: ONNX_PACKAGE_VERSION, isNew: true };
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof BackendError ? error : new BackendError(messageOf(error), { cause: error });
  } finally {
    lock.release();
  }
}

async function installPackage(
  aside: string,
  { env = process.env, signal }: InstallOnnxOptions,
): Promise<void> {
  const manifest = {
    name: 'skein-onnxruntime',
    private: true,
    dependencies: { [ONNX_PACKAGE]: ONNX_PACKAGE_VERSION },
  };
  writeFileSync(join(aside, 'package.json'), JSON.stringify(manifest, null, 2));
  await runStep({
    name: 'npm install',
    command: process.platform === 'win32' ? 'npm.cmd' : 'npm',
    arguments: [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--prefer-offline',
    ],
    directory: aside,
    env: { ...env, ONNXRUNTIME_NODE_INSTALL: 'skip' },
    signal,
    failure,
    advice: [
      [
        /ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|network/i,
        'the npm registry cannot be reached from here; the same command goes on once it can',
      ],
      [/ENOENT/, 'npm must be in the PATH'],
    ],
  });
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

/** By a process of its own: a library that does not fit may end it. @throws BackendError where it cannot be loaded */
async function tryPackage(aside: string, { env = process.env, signal }: InstallOnnxOptions): Promise<void> {
  await runStep({
    name: `Loading ${ONNX_PACKAGE}`,
    command: process.execPath,
    arguments: ['-e', 'require(process.argv[1]).InferenceSession.create', `./node_modules/${ONNX_PACKAGE}`],
    directory: aside,
    env,
    signal,
    failure,
    advice: [[/cannot open shared object file/, 'a library that ONNX Runtime needs is missing']],
  });
}
