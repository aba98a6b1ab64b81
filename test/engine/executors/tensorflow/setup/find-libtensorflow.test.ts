import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findLibTensorFlow } from '../../../../../engine/executors/tensorflow/setup/find-libtensorflow.js';
import { temporaryFolder } from '../../../../support/fresh-folders.js';

const root = temporaryFolder('skein-find-tensorflow');

function write(path: string, text = ''): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
}

/** A venv with what pip's tensorflow brings, as far as it is looked for. */
function venvWith(name: string, version = '2.21.0'): { venv: string; sitePackages: string } {
  const venv = join(root, name);
  const sitePackages = join(venv, 'lib', 'python3.11', 'site-packages');
  for (const file of [
    'libtensorflow_cc.so.2',
    'libtensorflow_framework.so.2',
    'include/tensorflow/c/c_api.h',
  ]) {
    write(join(sitePackages, 'tensorflow', file));
  }
  mkdirSync(join(sitePackages, `tensorflow_cpu-${version}.dist-info`));
  return { venv, sitePackages };
}

/** A program that answers as python does when it is asked for its folders. */
function pythonThatSays(folder: string, folders: string[]): string {
  const python = join(folder, 'python3');
  write(python, `#!/bin/sh\necho '${JSON.stringify(folders)}'\n`);
  chmodSync(python, 0o755);
  return python;
}

describe('findLibTensorFlow', () => {
  const { venv, sitePackages } = venvWith('venv');
  const library = join(sitePackages, 'tensorflow', 'libtensorflow_cc.so.2');

  it('takes a venv, its site-packages, the package and a python', () => {
    const python = pythonThatSays(join(root, 'bin'), [sitePackages]);
    for (const from of [venv, sitePackages, join(sitePackages, 'tensorflow'), python]) {
      expect(findLibTensorFlow({ from })).toMatchObject({ library, version: '2.21.0' });
    }
  });

  it('takes an unpacked libtensorflow, whose version is not known', () => {
    const folder = join(root, 'libtensorflow');
    const files = ['lib/libtensorflow.so', 'lib/libtensorflow_framework.so', 'include/tensorflow/c/c_api.h'];
    for (const file of files) write(join(folder, file));
    expect(findLibTensorFlow({ from: folder })).toEqual({
      library: join(folder, 'lib/libtensorflow.so'),
      framework: join(folder, 'lib/libtensorflow_framework.so'),
      include: join(folder, 'include'),
      version: null,
    });
  });

  it('asks the active venv, then the python in the PATH', () => {
    const other = venvWith('other', '2.20.0');
    pythonThatSays(join(root, 'path'), [other.sitePackages]);
    const PATH = `${join(root, 'path')}:/bin`;
    expect(findLibTensorFlow({ env: { PATH, VIRTUAL_ENV: venv } })).toMatchObject({ library });
    expect(findLibTensorFlow({ env: { PATH } })).toMatchObject({ version: '2.20.0' });
  });

  it('says where it looked and what to do, where there is none', () => {
    const empty = join(root, 'empty', 'python');
    const PATH = join(root, 'empty');
    expect(() => findLibTensorFlow({ env: { PATH } })).toThrow(
      'No TensorFlow of pip was found (no python was found): pip install tensorflow-cpu',
    );
    pythonThatSays(PATH, [join(root, 'nothing')]);
    expect(() => findLibTensorFlow({ env: { PATH: `${PATH}:/bin` } })).toThrow(`(looked in ${root}/nothing)`);
    expect(() => findLibTensorFlow({ from: PATH })).toThrow(`${PATH}: no libtensorflow is there`);
    expect(() => findLibTensorFlow({ from: join(root, 'gone') })).toThrow('there is no such file or folder');
    write(empty, 'no program');
    expect(() => findLibTensorFlow({ from: empty })).toThrow('neither a folder nor a python that runs');
  });
});
