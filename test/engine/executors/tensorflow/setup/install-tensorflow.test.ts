import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findInstallation, setupFolder } from '../../../../../engine/executors/tensorflow/installation.js';
import {
  type InstallOptions,
  installTensorFlow,
} from '../../../../../engine/executors/tensorflow/setup/install-tensorflow.js';
import { temporaryFolder } from '../../../../support/fresh-folders.js';

const root = temporaryFolder('skein-setup');

const PACKAGE = '@tensorflow/tfjs-node-gpu';
/** A fake of tensorflow's module: FAKE_PRODUCT sets the product that it computes. */
const MODULE = `
const fake = { product: (process.env.FAKE_PRODUCT ?? '19,22,43,50').split(',').map(Number) };
module.exports = {
  tensor2d: () => null,
  matMul: () => ({ dataSync: () => fake.product }),
  backend: () => ({ isUsingGpuDevice: false, binding: { TF_Version: '2.21.0' } }),
};
`;

/** In the place of npm: writes down what it is called with, makes the package, fails where it is asked to. */
const NPM = `#!/bin/sh
echo "$@" >> ${join(root, 'calls')}
echo "$FAKE_FAILURE" | grep -q "^$1 " && { echo "\${FAKE_FAILURE#* }" >&2; exit 1; }
[ "$1" = "$FAKE_HANGS" ] && sleep 60
folder=node_modules/${PACKAGE}
case "$1" in
  install) mkdir -p $folder && echo '{"name":"${PACKAGE}","main":"main.js"}' > $folder/package.json && cp ${root}/main.js $folder/ ;;
  run|rebuild) mkdir -p $folder/lib/napi-v8 && touch $folder/lib/napi-v8/tfjs_binding.node ;;
esac
exit 0
`;

const library = join(root, 'pip', 'tensorflow', 'libtensorflow_cc.so.2');
function writePackage(version: string): void {
  rmSync(join(root, 'pip'), { recursive: true, force: true });
  for (const file of [
    'libtensorflow_cc.so.2',
    'libtensorflow_framework.so.2',
    'include/tensorflow/c/c_api.h',
  ]) {
    mkdirSync(dirname(join(root, 'pip', 'tensorflow', file)), { recursive: true });
    writeFileSync(join(root, 'pip', 'tensorflow', file), '');
  }
  mkdirSync(join(root, 'pip', `tensorflow_cpu-${version}.dist-info`));
}

const cacheDirectory = join(root, 'cache');
const calls = () => readFileSync(join(root, 'calls'), 'utf8').trim().split('\n');

beforeEach(() => {
  rmSync(cacheDirectory, { recursive: true, force: true });
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'main.js'), MODULE);
  writeFileSync(join(root, 'bin', 'npm'), NPM);
  chmodSync(join(root, 'bin', 'npm'), 0o755);
  writeFileSync(join(root, 'calls'), '');
  writePackage('2.21.0');
});

function install(environment: Record<string, string> = {}, more: Partial<InstallOptions> = {}) {
  const env = { ...process.env, PATH: `${join(root, 'bin')}:${process.env.PATH}`, ...environment };
  return installTensorFlow({
    package: PACKAGE,
    from: join(root, 'pip'),
    cacheDirectory,
    env,
    onStep: () => {},
    ...more,
  });
}

/** Nothing is there, and nothing half-done lies next to it. */
function expectNothing(): void {
  expect(findInstallation(cacheDirectory)).toBeNull();
  expect(readdirSync(join(cacheDirectory, 'tensorflow'))).toEqual([]);
}

describe('installTensorFlow', () => {
  it('installs without scripts, links the library, compiles, tries it, and is found then', async () => {
    const installed = await install();
    expect(installed).toMatchObject({ tensorflow: '2.21.0', library, gpu: false, isNew: true });
    expect(calls()).toEqual([expect.stringMatching(/^install --ignore-scripts /), 'run --silent binding']);
    const folder = join(setupFolder(cacheDirectory), 'node_modules', PACKAGE);
    expect(findInstallation(cacheDirectory)).toEqual({ package: PACKAGE, folder, from: 'setup' });
    expect(readdirSync(join(folder, 'deps', 'lib')).sort()).toEqual([
      'libtensorflow.so',
      'libtensorflow.so.2',
      'libtensorflow_cc.so.2',
      'libtensorflow_framework.so',
      'libtensorflow_framework.so.2',
    ]);
  });

  it('does nothing a second time, all of it again by force and for another library', async () => {
    await install();
    expect(await install()).toMatchObject({ isNew: false });
    expect(calls()).toHaveLength(2);
    expect(await install({}, { force: true })).toMatchObject({ isNew: true });
    writePackage('2.20.0');
    expect(await install()).toMatchObject({ isNew: true });
    expect(calls()).toHaveLength(6);
  });

  it('lets the package download where that is asked for', async () => {
    const installed = await install({}, { from: undefined, download: true });
    expect(installed).toMatchObject({ library: null, isNew: true });
    expect(calls()[1]).toBe(`rebuild --foreground-scripts ${PACKAGE}`);
  });

  it.each([
    [
      'install npm error code ENOTFOUND',
      'npm install failed: code ENOTFOUND; the npm registry cannot be reached',
    ],
    ['run gyp ERR! stack Error: not found: make', 'g++ make python3'],
    ['run gyp ERR! find Python could not find it', 'a C++ compiler, make and Python 3 are needed'],
  ])('says what failed and what to do, and leaves nothing: %s', async (failure, message) => {
    await expect(install({ FAKE_FAILURE: failure })).rejects.toThrow(message);
    expectNothing();
  });

  it('says where a download fails that pip has what it needs', async () => {
    const download = install(
      { FAKE_FAILURE: 'rebuild Error: getaddrinfo ENOTFOUND' },
      { download: true, from: undefined },
    );
    await expect(download).rejects.toThrow('pip install tensorflow-cpu and take --from');
    expectNothing();
  });

  it('says so where the disk is too small, before and when it fills up meanwhile', async () => {
    const full = 'the disk has 5 MB free, and the package takes 320 MB';
    const small = install({}, { freeBytes: () => 5e6 });
    await expect(small).rejects.toThrow(`${join(cacheDirectory, 'tensorflow')}: ${full}; make room`);
    expect(calls()).toEqual(['']);
    const filling = () => {
      let looks = 0;
      return () => (looks++ === 0 ? 1e9 : 5e6);
    };
    // npm has been seen to end well on a full disk, with files cut off.
    await expect(install({}, { freeBytes: filling() })).rejects.toThrow(full);
    expect(calls()).toEqual([expect.stringMatching(/^install/)]);
    const failing = install(
      { FAKE_FAILURE: 'install npm error Unexpected end of JSON input' },
      { freeBytes: filling(), download: true, from: undefined },
    );
    await expect(failing).rejects.toThrow(`${full}, and the download of libtensorflow`);
    expectNothing();
  });

  it('keeps nothing that does not load or compute', async () => {
    await expect(install({ FAKE_PRODUCT: '1,2,3,4' })).rejects.toThrow('came out as 1,2,3,4');
    expectNothing();
    writeFileSync(
      join(root, 'main.js'),
      "throw new Error('libcudart.so.12: cannot open shared object file');",
    );
    await expect(install()).rejects.toThrow('libcudart.so.12: cannot open shared object file');
    expectNothing();
  });

  it('refuses a TensorFlow that is too old before it does anything', async () => {
    writePackage('2.4.1');
    await expect(install()).rejects.toThrow('is TensorFlow 2.4.1; 2.9 or a later 2.x is needed.');
    expect(calls()).toEqual(['']);
  });

  it('leaves nothing where it is interrupted, and what was there before stays', async () => {
    const abort = new AbortController();
    const interrupted = install({ FAKE_HANGS: 'install' }, { signal: abort.signal });
    await expect.poll(calls).toEqual([expect.stringMatching(/^install/)]);
    abort.abort(new Error('interrupted'));
    await expect(interrupted).rejects.toThrow('interrupted');
    expectNothing();
    await install();
    await expect(install({ FAKE_FAILURE: 'run error' }, { force: true })).rejects.toThrow();
    expect(existsSync(findInstallation(cacheDirectory)!.folder)).toBe(true);
  });
});
