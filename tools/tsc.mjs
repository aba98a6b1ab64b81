// Runs TypeScript's compiler: the native one of TypeScript 7, which takes a third of the processor time, or the one in JavaScript
// where the native one was not installed, as on a platform that has none. Both emit the same JavaScript. UNCHECKED_TYPES in the
// environment spares it the check of types.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** Path of the native compiler, or null. */
function nativeCompiler() {
  const program = process.platform === 'win32' ? 'tsc.exe' : 'tsc';
  try {
    const manifest = `@typescript/typescript-${process.platform}-${process.arch}/package.json`;
    const path = join(dirname(require.resolve(manifest)), 'lib', program);
    return existsSync(path) ? path : null;
  } catch {
    return null;
  }
}

const native = nativeCompiler();
const [command, ...args] =
  native === null ? [process.execPath, require.resolve('typescript/bin/tsc')] : [native];
const unchecked = process.env.UNCHECKED_TYPES ? ['--noCheck'] : [];
const { status, error } = spawnSync(command, [...args, ...process.argv.slice(2), ...unchecked], {
  stdio: 'inherit',
});
if (error) throw error;
process.exitCode = status ?? 1;
