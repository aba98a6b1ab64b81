import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The compiled command line. */
export const CLI = fileURLToPath(new URL('../../dist/bin/skein.js', import.meta.url));

/** Starts `skein serve` with these arguments. */
export function spawnSkein(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [CLI, 'serve', ...args], { stdio: 'ignore' });
}
