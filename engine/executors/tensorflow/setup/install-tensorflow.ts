import { existsSync, mkdirSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  discardBuildDirectory,
  makeBuildDirectory,
  replaceByBuild,
} from '../../../../base/build-directory.js';
import { runStep, type Step } from '../../../../base/run-step.js';
import { takeSetupLock } from '../../../../base/setup-lock.js';
import {
  packageFolder,
  readSetupRecord,
  recordPath,
  type SetupRecord,
  setupFolder,
  TENSORFLOW_PACKAGE_VERSION,
  type TensorFlowPackage,
} from '../installation.js';
import { TensorFlowError } from '../load-tensorflow.js';
import { findLibTensorFlow, type LibTensorFlow } from './find-libtensorflow.js';

const failure = (message: string) => new TensorFlowError(message);

export interface InstallOptions {
  package: TensorFlowPackage;
  /** Place to search, as in findLibTensorFlow. */
  from?: string | undefined;
  /** Uses the package's own download of libtensorflow, instead of linking one. */
  download?: boolean | undefined;
  /** Replaces an installation that already exists. */
  force?: boolean | undefined;
  cacheDirectory?: string | undefined;
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
  onStep: (text: string) => void;
  /** Free bytes on the disk of a folder; for tests. */
  freeBytes?: (folder: string) => number;
}

export interface Installed extends SetupRecord {
  folder: string;
  /** False: the installation already existed. */
  isNew: boolean;
}

/** The package with its binding, without a libtensorflow. */
const PACKAGE_BYTES = 320 * 10 ** 6;
/**
 * A disk with less free than this when a step has failed was too full for it: npm and compilers then report other errors, or
 * none.
 */
const FULL_BYTES = 32 * 10 ** 6;
const COMPILER =
  'a C++ compiler, make and Python 3 are needed: on Debian or Ubuntu "apt-get install g++ make python3"';
const NETWORK = 'the npm registry cannot be reached from here; the same command goes on once it can';
const DOWNLOAD =
  'the package downloads libtensorflow from its own server; where that cannot be reached, pip install tensorflow-cpu and take --from';

/**
 * Installs @tensorflow/tfjs-node-gpu, or tfjs-node, into a folder of the user's cache: without its install script, with an
 * existing libtensorflow, and with its native part compiled here. The installation is made in a folder aside, tried by a
 * process of its own, and appears by one rename; npm keeps its downloads in npm's cache, so that a second attempt is short.
 *
 *   npm install --ignore-scripts -> deps/lib -> libtensorflow -> node-pre-gyp --build-from-source -> a product -> rename
 *
 * @throws TensorFlowError or a related UsageError if it cannot be done; the reason of `signal`.
 */
export async function installTensorFlow(options: InstallOptions): Promise<Installed> {
  const target = setupFolder(options.cacheDirectory);
  const library = options.download ? null : findLibTensorFlow(options);
  if (library !== null) checkVersion(library);
  const present = options.force ? null : usable(target, options, library);
  if (present !== null) return { ...present, folder: target, isNew: false };
  const lock = await takeSetupLock(target, { onStep: options.onStep, signal: options.signal, failure });
  try {
    const made = options.force ? null : usable(target, options, library);
    if (made !== null) return { ...made, folder: target, isNew: false };
    const record = await build(target, library, options);
    return { ...record, folder: target, isNew: true };
  } finally {
    lock.release();
  }
}

/** Record of the present installation, if it is the one asked for. */
function usable(target: string, options: InstallOptions, library: LibTensorFlow | null): SetupRecord | null {
  const record = readSetupRecord(target);
  if (record === null) return null;
  const isAsked =
    record.package === options.package &&
    record.packageVersion === TENSORFLOW_PACKAGE_VERSION &&
    record.library === (library?.library ?? null) &&
    (library?.version ?? record.tensorflow) === record.tensorflow;
  return isAsked ? record : null;
}

async function build(
  target: string,
  library: LibTensorFlow | null,
  options: InstallOptions,
): Promise<SetupRecord> {
  const aside = makeBuildDirectory(target);
  try {
    const { package: name, onStep } = options;
    onStep(`installing ${name} ${TENSORFLOW_PACKAGE_VERSION}`);
    checkRoom(aside, options, PACKAGE_BYTES);
    await installPackage(aside, options);
    checkRoom(aside, options, FULL_BYTES);
    if (library === null) {
      onStep('downloading libtensorflow and its binding');
      await runStep(npmStep(aside, options, ['rebuild', '--foreground-scripts', name], [[/./, DOWNLOAD]]));
    } else {
      onStep(`compiling the binding against ${library.library}`);
      link(packageFolder(aside, name), library);
      await compile(aside, options);
    }
    onStep('trying it');
    const record = await checkedRecord(aside, name, library?.library ?? null, options);
    writeFileSync(recordPath(aside), `${JSON.stringify(record, null, 2)}\n`);
    replace(aside, target);
    return record;
  } catch (error) {
    if (error instanceof TensorFlowError) checkRoom(aside, options, FULL_BYTES);
    throw error;
  } finally {
    discardBuildDirectory(aside);
  }
}

/** @throws TensorFlowError if less is free */
function checkRoom(
  aside: string,
  { freeBytes = freeOn, download = false }: InstallOptions,
  bytes: number,
): void {
  const free = freeBytes(aside);
  if (free >= bytes) return;
  const more = download ? ', and the download of libtensorflow several times as much' : '';
  throw new TensorFlowError(
    `${dirname(aside)}: the disk has ${Math.floor(free / 1e6)} MB free, and the package takes ${PACKAGE_BYTES / 1e6} MB${more}; make room, or set SKEIN_CACHE_DIR to a folder of another disk.`,
  );
}

function freeOn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function replace(aside: string, target: string): void {
  if (replaceByBuild(aside, target)) return;
  throw new TensorFlowError(`${target} was made by another process in between; run the command again.`);
}

async function installPackage(aside: string, options: InstallOptions): Promise<void> {
  const manifest = {
    name: 'skein-tensorflow',
    private: true,
    dependencies: { [options.package]: TENSORFLOW_PACKAGE_VERSION },
    scripts: { binding: `cd node_modules/${options.package} && node-pre-gyp install --build-from-source` },
  };
  writeFileSync(join(aside, 'package.json'), JSON.stringify(manifest, null, 2));
  const flags = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--prefer-offline',
  ];
  await runStep(
    npmStep(aside, options, flags, [
      [/ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|network/i, NETWORK],
      [/ENOENT/, 'npm must be in the PATH'],
    ]),
  );
}

/**
 * Makes links with the names that the package's build and its loader look for, and by which the libraries find one
 * another.
 */
function link(folder: string, { library, framework, include }: LibTensorFlow): void {
  const lib = join(folder, 'deps', 'lib');
  mkdirSync(lib, { recursive: true });
  for (const [path, names] of [
    [library, ['libtensorflow.so', 'libtensorflow.so.2']],
    [framework, ['libtensorflow_framework.so', 'libtensorflow_framework.so.2']],
  ] as const) {
    for (const name of new Set([...names, basename(path)])) symlinkSync(path, join(lib, name));
  }
  symlinkSync(include, join(folder, 'deps', 'include'));
  // The CUDA libraries of pip lie next to the package tensorflow, and are searched from the library's folder.
  const nvidia = join(dirname(dirname(library)), 'nvidia');
  if (existsSync(nvidia)) symlinkSync(nvidia, join(folder, 'deps', 'nvidia'));
}

async function compile(aside: string, options: InstallOptions): Promise<void> {
  await runStep(
    npmStep(
      aside,
      options,
      ['run', '--silent', 'binding'],
      [[/find Python|not find any Python|g\+\+|make|compiler|gyp ERR! stack Error: not found/i, COMPILER]],
    ),
  );
  rmSync(join(packageFolder(aside, options.package), 'build'), { recursive: true, force: true });
}

function npmStep(aside: string, options: InstallOptions, flags: string[], advice: Step['advice']): Step {
  const prefix = join(dirname(process.execPath), '..');
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  return {
    name: `npm ${flags[0] === 'run' ? 'run binding (node-pre-gyp)' : flags[0]}`,
    command: process.platform === 'win32' ? 'npm.cmd' : 'npm',
    arguments: flags,
    directory: aside,
    // If Node.js came with its headers, none have to be downloaded.
    env: { ...(options.env ?? process.env), ...(hasHeaders ? { npm_config_nodedir: prefix } : {}) },
    signal: options.signal,
    failure,
    advice,
  };
}

function checkVersion({ library, version }: LibTensorFlow): void {
  const [major, minor] = version?.split('.').map(Number) ?? [2, Number.POSITIVE_INFINITY];
  if (major === 2 && minor! >= 9) return;
  throw new TensorFlowError(`${library} is TensorFlow ${version}; 2.9 or a later 2.x is needed.`);
}

/**
 * Script that computes a product whose result is known, in a process of its own: a library that does not fit may end
 * it.
 */
const SCRIPT = `
const util = require('node:util');
util.isNullOrUndefined ??= (value) => value === null || value === undefined;
util.isArray ??= Array.isArray;
const tf = require(process.argv[1]);
const product = tf.matMul(tf.tensor2d([1, 2, 3, 4], [2, 2]), tf.tensor2d([5, 6, 7, 8], [2, 2])).dataSync();
const { isUsingGpuDevice, binding } = tf.backend();
console.log(JSON.stringify({ product: [...product], gpu: isUsingGpuDevice, tensorflow: binding.TF_Version }));
`;

/** Loads and tries the installation in `folder`. @throws TensorFlowError if it does not compute */
async function checkedRecord(
  folder: string,
  name: TensorFlowPackage,
  library: string | null,
  options: Partial<Pick<Step, 'env' | 'signal'>>,
): Promise<SetupRecord> {
  const output = await runStep({
    name: `Loading ${name}`,
    command: process.execPath,
    arguments: ['-e', SCRIPT, `./node_modules/${name}`],
    directory: folder,
    env: { ...(options.env ?? process.env), TF_CPP_MIN_LOG_LEVEL: '3' },
    signal: options.signal,
    failure: (message) => new TensorFlowError(message),
    advice: [[/cannot open shared object file/, 'a library that libtensorflow needs is missing']],
  });
  const { product, gpu, tensorflow } = JSON.parse(output.trim().split('\n').at(-1)!) as {
    product: number[];
    gpu: boolean;
    tensorflow: string;
  };
  if (String(product) !== '19,22,43,50') {
    throw new TensorFlowError(`${name} does not compute: the product 19,22,43,50 came out as ${product}.`);
  }
  return { package: name, packageVersion: TENSORFLOW_PACKAGE_VERSION, tensorflow, library, gpu };
}
