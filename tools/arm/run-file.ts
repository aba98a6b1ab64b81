import { spawnSync } from 'node:child_process';
import { root } from './emulated-machine.js';
import type { TestFile } from './test-files.js';

/** A bundled test file, and where it runs. */
export interface Run {
  file: TestFile;
  /** The program that runs Node.js for another system, and its arguments with the script and the bundle. */
  command: [program: string, args: string[]];
  /** Folder in which node-gyp-build finds the addon. */
  addon: string;
}

/** Runs a file in a process of its own, so that an end by a signal is that file's, and prints its counts. Returns whether it passed. */
export function runFile({ file: { path, names, isShort }, command: [program, args], addon }: Run): boolean {
  const startMs = performance.now();
  const chosen = names === undefined ? {} : { SKEIN_TEST_NAMES: names };
  const scale = isShort ? { SKEIN_TEST_SCALE: 'short' } : {};
  const { status, signal, stdout } = spawnSync(program, args, {
    cwd: root,
    env: { ...process.env, ...chosen, ...scale, SKEIN_PREBUILD: addon },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  const end = signal === null ? '' : ` ended by ${signal}`;
  console.log(`${path}: ${stdout.trim()}${end} (${Math.round((performance.now() - startMs) / 1000)} s)`);
  return status === 0;
}
