import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'skein-addon-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The package as npm unpacks it, on a machine whose PATH has node and nothing to compile with. */
function installWithoutTools(name: string, args: readonly string[]) {
  const copy = join(folder, name);
  mkdirSync(join(copy, 'tools'), { recursive: true });
  for (const file of ['package.json', 'binding.gyp', 'tools/build-addon.mjs']) {
    copyFileSync(join(root, file), join(copy, file));
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const bin = join(copy, 'bin');
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, 'node'));
  const result = spawnSync(process.execPath, [join(copy, 'tools/build-addon.mjs'), ...args], {
    cwd: copy,
    env: { PATH: bin, HOME: copy },
    encoding: 'utf8',
  });
  return { ...result, copy };
}

describe('the install script', () => {
  it('succeeds without compiler, make and Python, and says what is missing and what to do', () => {
    const { status, stderr, copy } = installWithoutTools('optional', []);
    expect(stderr).toMatch(
      /^skein: the native addon was not built \(.+\)\. [^\n]*C\+\+20 compiler[^\n]*npm rebuild skein[^\n]*\n$/,
    );
    expect(status).toBe(0);
    expect(existsSync(join(copy, 'build', 'Release', 'skein.node'))).toBe(false);
  });

  it('fails where the addon is required', () => {
    const { status, stderr } = installWithoutTools('required', ['--required']);
    expect(stderr).toMatch(/skein: the native addon was not built/);
    expect(status).toBe(1);
  });
});
