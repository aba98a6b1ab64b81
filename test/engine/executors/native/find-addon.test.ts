import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NativeAddon } from '../../../../engine/executors/native/addon.js';
import { findAddons, type System } from '../../../../engine/executors/native/find-addon.js';
import { ADDON_ABI, firstThatLoads } from '../../../../engine/executors/native/load-addon.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const folder = temporaryFolder('skein-find-addon');

const OWN = 'build/Release/skein.node';
const AHEAD = `prebuilds/${process.platform}-${process.arch}/skein.node`;
const GLIBC = 'node_modules/@skein/native-linux-x64-glibc/skein.node';
const MUSL = 'node_modules/@skein/native-linux-x64-musl/skein.node';

const MANIFEST = '{ "name": "x", "version": "1.2.3" }';

/** A package with these files in it or next to it. */
function packageWith(...files: string[]): string {
  const root = realpathSync(mkdtempSync(join(folder, 'package-')));
  writeFileSync(join(root, 'package.json'), MANIFEST);
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), '');
    if (file.startsWith('node_modules/')) writeFileSync(join(root, dirname(file), 'package.json'), MANIFEST);
  }
  return root;
}

const linux = (libc: 'glibc' | 'musl'): System => ({ platform: 'linux', arch: 'x64', libc: () => libc });

// node-gyp-build takes the addon that this variable names before all others.
beforeEach(() => vi.stubEnv('SKEIN_PREBUILD', undefined));
afterEach(() => vi.unstubAllEnvs());

describe('the addon', () => {
  it.each([
    ['compiled here goes before all others', [OWN, AHEAD, GLIBC], [OWN, GLIBC]],
    ['compiled ahead in the package itself goes before a package of its own', [AHEAD, GLIBC], [AHEAD, GLIBC]],
    ['is else that of the package which npm has installed', [GLIBC], [GLIBC]],
  ])('%s', (_, files, found) => {
    const root = packageWith(...files);
    expect(findAddons(root, linux('glibc'))).toEqual({
      paths: found.map((path) => join(root, path)),
      reasons: [],
    });
  });

  it('is that of this C library where those of both are installed; npm has looked where there is one', () => {
    const both = packageWith(GLIBC, MUSL);
    expect(findAddons(both, linux('musl')).paths).toEqual([join(both, MUSL)]);
    expect(findAddons(both, linux('glibc')).paths).toEqual([join(both, GLIBC)]);
    const one = packageWith(MUSL);
    const unasked = () => {
      throw new Error('not in this test');
    };
    expect(findAddons(one, { ...linux('musl'), libc: unasked }).paths).toEqual([join(one, MUSL)]);
  });

  it('of a package of another version is not taken', () => {
    const root = packageWith(GLIBC);
    writeFileSync(join(root, dirname(GLIBC), 'package.json'), '{ "version": "1.2.2" }');
    expect(findAddons(root, linux('glibc'))).toEqual({
      paths: [],
      reasons: [
        '@skein/native-linux-x64-glibc is of version 1.2.2, and skein of 1.2.3: "npm install @skein/native-linux-x64-glibc@1.2.3" brings the one that fits',
      ],
    });
  });

  it('that is cut off is not taken, by the length in its stamp', () => {
    const root = packageWith(OWN, GLIBC);
    for (const file of [OWN, GLIBC]) {
      writeFileSync(
        join(root, file.replace('.node', '.json')),
        '{ "sources": "a", "addon": "b", "bytes": 7 }',
      );
    }
    const damaged = (file: string) => `${join(root, file)} has 0 bytes and not 7, so it is damaged`;
    expect(findAddons(root, linux('glibc'))).toEqual({ paths: [], reasons: [damaged(OWN), damaged(GLIBC)] });
    writeFileSync(join(root, GLIBC), 'seven b');
    expect(findAddons(root, linux('glibc')).paths).toEqual([join(root, GLIBC)]);
  });

  it('that is nowhere has a reason which names the package, or says that there is none', () => {
    const reasonIn = (root: string, system: System) => findAddons(root, system).reasons;
    expect(reasonIn(packageWith(), linux('musl'))).toEqual(['it was not compiled']);
    const others = packageWith(GLIBC);
    expect(reasonIn(others, { platform: 'linux', arch: 'riscv64', libc: () => 'glibc' })).toEqual([
      'it was not compiled, and there is no package of it for linux-riscv64',
    ]);
    expect(reasonIn(others, { platform: 'darwin', arch: 'arm64', libc: () => 'glibc' })).toEqual([
      'it was not compiled',
    ]);
    const published = packageWith();
    const optionalDependencies = { '@skein/native-linux-x64-glibc': '1.2.3' };
    writeFileSync(
      join(published, 'package.json'),
      JSON.stringify({ version: '1.2.3', optionalDependencies }),
    );
    expect(reasonIn(published, linux('glibc'))).toEqual([
      'it was not compiled, and @skein/native-linux-x64-glibc is not installed, which "npm install @skein/native-linux-x64-glibc@1.2.3" brings',
    ]);
  });

  it('is the first that loads, and the error that of the first', () => {
    const addon = (abi: number) => ({ abi }) as NativeAddon;
    const open = (path: string) => {
      if (path === 'foreign') throw new Error('invalid ELF header\nmore');
      return addon(path === 'old' ? 1 : ADDON_ABI);
    };
    expect(firstThatLoads({ paths: ['foreign', 'old', 'good'], reasons: [] }, open)).toEqual(
      addon(ADDON_ABI),
    );
    expect(() => firstThatLoads({ paths: ['foreign', 'old'], reasons: [] }, open)).toThrow(
      /^The native addon of skein could not be loaded \(invalid ELF header\); install/,
    );
    expect(() => firstThatLoads({ paths: [], reasons: ['one', 'two'] }, open)).toThrow(
      /loaded \(one; two\); install/,
    );
  });
});
