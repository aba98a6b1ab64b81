import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findAddon, type System } from '../../../../engine/executors/native/find-addon.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const folder = temporaryFolder('skein-find-addon');

const OWN = 'build/Release/skein.node';
const AHEAD = `prebuilds/${process.platform}-${process.arch}/skein.node`;
const GLIBC = 'node_modules/@skein/native-linux-x64-glibc/skein.node';
const MUSL = 'node_modules/@skein/native-linux-x64-musl/skein.node';

/** A package with these files in it or beside it. */
function packageWith(...files: string[]): string {
  const root = realpathSync(mkdtempSync(join(folder, 'package-')));
  writeFileSync(join(root, 'package.json'), '{ "name": "skein" }');
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), '');
  }
  return root;
}

const linux = (libc: 'glibc' | 'musl'): System => ({ platform: 'linux', arch: 'x64', libc: () => libc });

// node-gyp-build takes the addon that this variable names before all others.
beforeEach(() => vi.stubEnv('SKEIN_PREBUILD', undefined));
afterEach(() => vi.unstubAllEnvs());

describe('the addon', () => {
  it.each([
    ['compiled here goes before all others', [OWN, AHEAD, GLIBC], OWN],
    ['compiled ahead in the package itself goes before a package of its own', [AHEAD, GLIBC], AHEAD],
    ['is else that of the package which npm has installed', [GLIBC], GLIBC],
  ])('%s', (_, files, found) => {
    const root = packageWith(...files);
    expect(findAddon(root, linux('glibc'))).toBe(join(root, found));
  });

  it('is that of this C library where those of both are installed; npm has looked where there is one', () => {
    const both = packageWith(GLIBC, MUSL);
    expect(findAddon(both, linux('musl'))).toBe(join(both, MUSL));
    expect(findAddon(both, linux('glibc'))).toBe(join(both, GLIBC));
    const one = packageWith(MUSL);
    const unasked = () => {
      throw new Error('not in this test');
    };
    expect(findAddon(one, { ...linux('musl'), libc: unasked })).toBe(join(one, MUSL));
  });

  it('that is nowhere is an error which names the package, or says that there is none', () => {
    expect(() => findAddon(packageWith(), linux('musl'))).toThrow(
      'it was not compiled, and @skein/native-linux-x64-musl is not installed',
    );
    const others = packageWith(GLIBC);
    expect(() => findAddon(others, { platform: 'linux', arch: 'riscv64', libc: () => 'glibc' })).toThrow(
      'it was not compiled, and there is no package of it for linux-riscv64',
    );
    expect(() => findAddon(others, { platform: 'darwin', arch: 'arm64', libc: () => 'glibc' })).toThrow(
      'it was not compiled, and @skein/native-darwin-arm64 is not installed',
    );
  });
});
