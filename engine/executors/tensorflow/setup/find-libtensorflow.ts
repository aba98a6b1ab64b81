import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TensorFlowError } from '../load-tensorflow.js';

/** A libtensorflow to link: its shared library, the framework library that it needs, and its C headers. */
export interface LibTensorFlow {
  library: string;
  framework: string;
  include: string;
  /** Version of the Python package that contains it; null: not known before it is loaded. */
  version: string | null;
}

export interface FindOptions {
  /** A folder or a python to search; absent: those of the environment. */
  from?: string | undefined;
  env?: Readonly<Record<string, string | undefined>>;
}

const PYTHONS = ['python3', 'python'];
const ASK_PYTHON =
  'import json, site, sysconfig; print(json.dumps([sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), site.getusersitepackages()]))';
const HOW =
  "pip install tensorflow-cpu (or tensorflow[and-cuda] for a GPU) into a venv, then name it with --from; or --download takes the package's own";

/**
 * Finds the libtensorflow of pip's tensorflow or tensorflow-cpu, or of an unpacked libtensorflow archive. `from` may be a
 * site-packages folder, a venv, a python or the folder itself; without it the active venv and the python in PATH are
 * searched.
 *
 * @throws TensorFlowError naming the places that were searched.
 */
export function findLibTensorFlow({ from, env = process.env }: FindOptions): LibTensorFlow {
  if (process.platform !== 'linux') {
    throw new TensorFlowError(
      `Linking an existing libtensorflow is done on Linux; on ${process.platform} take --download.`,
    );
  }
  const folders = from === undefined ? ofEnvironment(env) : ofPath(resolve(from), env);
  for (const folder of folders) {
    const found = inFolder(folder);
    if (found !== null) return found;
  }
  if (from !== undefined) {
    throw new TensorFlowError(
      `${from}: no libtensorflow is there (libtensorflow_cc.so.2 or lib/libtensorflow.so, with its headers); a site-packages folder, a venv, a python or an unpacked libtensorflow is expected.`,
    );
  }
  const seen = folders.length === 0 ? 'no python was found' : `looked in ${folders.join(', ')}`;
  throw new TensorFlowError(`No TensorFlow of pip was found (${seen}): ${HOW}.`);
}

function ofEnvironment(env: Readonly<Record<string, string | undefined>>): string[] {
  const venv = env.VIRTUAL_ENV ? ofVenv(env.VIRTUAL_ENV) : [];
  for (const python of PYTHONS) {
    const folders = askPython(python, env);
    if (folders !== null) return [...new Set([...venv, ...folders])];
  }
  return venv;
}

function ofPath(path: string, env: Readonly<Record<string, string | undefined>>): string[] {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new TensorFlowError(`${path}: there is no such file or folder.`);
  if (status.isDirectory()) return [path, ...ofVenv(path)];
  const folders = /^python[\d.]*$/.test(basename(path)) ? askPython(path, env) : null;
  if (folders === null) {
    throw new TensorFlowError(`${path}: it is neither a folder nor a python that runs.`);
  }
  return folders;
}

function ofVenv(venv: string): string[] {
  const lib = join(venv, 'lib');
  if (!existsSync(lib)) return [];
  return readdirSync(lib)
    .filter((name) => name.startsWith('python'))
    .map((name) => join(lib, name, 'site-packages'));
}

function askPython(python: string, env: Readonly<Record<string, string | undefined>>): string[] | null {
  const { status, stdout } = spawnSync(python, ['-c', ASK_PYTHON], {
    encoding: 'utf8',
    env: env as NodeJS.ProcessEnv,
    timeout: 20_000,
  });
  if (status !== 0) return null;
  return [...new Set(JSON.parse(stdout) as string[])];
}

function inFolder(folder: string): LibTensorFlow | null {
  for (const package_ of [join(folder, 'tensorflow'), folder]) {
    const library = join(package_, 'libtensorflow_cc.so.2');
    const framework = join(package_, 'libtensorflow_framework.so.2');
    const include = join(package_, 'include');
    if (isWhole(library, framework, include)) {
      return { library, framework, include, version: versionOf(dirname(package_)) };
    }
  }
  const library = join(folder, 'lib', 'libtensorflow.so');
  const framework = join(folder, 'lib', 'libtensorflow_framework.so');
  const include = join(folder, 'include');
  return isWhole(library, framework, include) ? { library, framework, include, version: null } : null;
}

function isWhole(library: string, framework: string, include: string): boolean {
  return [library, framework, join(include, 'tensorflow', 'c', 'c_api.h')].every((path) => existsSync(path));
}

/** Version in the name of the folder that pip writes next to the package: tensorflow_cpu-2.21.0.dist-info. */
function versionOf(sitePackages: string): string | null {
  for (const name of readdirSync(sitePackages)) {
    const version = /^tensorflow(?:_cpu|_gpu|_intel|_cpu_aws)?-(\d[^-]*)\.dist-info$/.exec(name)?.[1];
    if (version !== undefined) return version;
  }
  return null;
}
