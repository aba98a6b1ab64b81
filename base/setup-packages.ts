import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { discardBuildDirectory, makeBuildDirectory, replaceByBuild } from './build-directory.js';
import { messageOf } from './error-text.js';
import { runStep } from './run-step.js';
import { takeSetupLock } from './setup-lock.js';
import { SkeinError } from './skein-error.js';

export interface SetupOptions {
  /** Make it again where it is there. */
  force?: boolean | undefined;
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
  onStep: (text: string) => void;
}

/** Packages of npm in a folder of their own. */
export interface PackageSetup {
  /** The folder, which has node_modules then. */
  target: string;
  /** Of the folder's package.json. */
  name: string;
  packages: Readonly<Record<string, string>>;
  /** Variables in addition to those of the environment. */
  variables?: Readonly<Record<string, string>>;
  /** Makes it smaller, before it is tried. */
  trim?: (folder: string) => void;
  /** A program of Node.js that ends well where the packages can be used; it is run in the folder. */
  trial: string;
  /** The error that a sentence is thrown as. */
  failure: (message: string, options?: ErrorOptions) => Error;
}

/**
 * Installs packages without their install scripts. They are made in a folder aside, tried by a process of their own, and appear by one
 * rename. False: they were there already. @throws `failure`; the reason of `signal`
 */
export async function setUpPackages(setup: PackageSetup, options: SetupOptions): Promise<boolean> {
  const { target, packages, trim, failure } = setup;
  const { force, onStep, signal } = options;
  const lock = await takeSetupLock(target, { onStep, signal, failure });
  try {
    if (!force && isThere(target, packages)) return false;
    const aside = makeBuildDirectory(target);
    try {
      onStep(
        `installing ${Object.entries(packages)
          .map((one) => one.join(' '))
          .join(', ')}`,
      );
      await install(aside, setup, options);
      trim?.(aside);
      onStep('trying it');
      await tryOut(aside, setup, options);
      if (!replaceByBuild(aside, target)) {
        throw failure(`${target} was made by another process in between; run the command again.`);
      }
    } finally {
      discardBuildDirectory(aside);
    }
    return true;
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof SkeinError ? error : failure(messageOf(error), { cause: error });
  } finally {
    lock.release();
  }
}

/** The folder has each package in the version that is wanted. */
function isThere(target: string, packages: PackageSetup['packages']): boolean {
  return Object.entries(packages).every(([name, version]) => {
    const file = join(target, 'node_modules', name, 'package.json');
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version;
  });
}

async function install(
  aside: string,
  { name, packages, variables, failure }: PackageSetup,
  { env = process.env, signal }: SetupOptions,
): Promise<void> {
  const manifest = { name, private: true, dependencies: packages };
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
    env: { ...env, ...variables },
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

/** By a process of its own: a library that does not fit may end it. */
async function tryOut(
  aside: string,
  { name, trial, failure }: PackageSetup,
  { env = process.env, signal }: SetupOptions,
): Promise<void> {
  await runStep({
    name: `Loading ${name}`,
    command: process.execPath,
    arguments: ['-e', trial],
    directory: aside,
    env,
    signal,
    failure,
    advice: [[/cannot open shared object file/, 'a library that it needs is missing']],
  });
}
