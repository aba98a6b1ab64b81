import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headersFolder } from '../build-addon/aside.mjs';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folder of compiled files; they stay, so that a second run compiles only what has changed. */
const folder = join(root, 'build/sanitize');

/**
 * Without optimisation the kernels compile in a tenth of the time, and every access is one that the source spells out.
 * Undefined behaviour ends the process, as an access out of bounds does.
 */
const ADDRESS = '-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined';

/** Runs a program to its end. @throws where it ends with anything but 0. */
async function runTool(
  program: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code ?? signal}.`);
}

/**
 * The addon with AddressSanitizer and UndefinedBehaviorSanitizer, all instruction sets of it, in a folder of its own.
 * node-gyp-build loads it where SKEIN_PREBUILD names that folder, which is returned.
 */
export async function compileAddon(): Promise<string> {
  const aside = join(folder, 'addon');
  mkdirSync(aside, { recursive: true });
  for (const name of ['binding.gyp', 'package.json']) cpSync(join(root, name), join(aside, name));
  if (!existsSync(join(aside, 'engine')))
    symlinkSync(join(root, 'engine'), join(aside, 'engine'), 'junction');
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const headers = headersFolder();
  const nodedir = headers === null ? [] : [`--nodedir=${headers}`];
  const env = { ...process.env, CXXFLAGS: ADDRESS, LDFLAGS: '-fsanitize=address,undefined' };
  await runTool(process.execPath, [gyp, 'configure', 'build', '-j', 'max', ...nodedir], { cwd: aside, env });
  return aside;
}

/** The driver of the threads, with one of the sanitizers: its path. */
export async function compileDriver(sanitizer: 'thread' | 'address'): Promise<string> {
  const out = join(folder, `driver-${sanitizer}`);
  const flags = sanitizer === 'thread' ? '-O1 -g1 -fsanitize=thread' : ADDRESS;
  const jobs = String(availableParallelism());
  const source = join(root, 'tools/sanitize/driver');
  await runTool('make', ['--silent', '-j', jobs, '-C', source, `OUT=${out}`, `SANITIZE=${flags}`], {
    cwd: root,
  });
  return join(out, 'driver');
}

/** Removes all that was compiled, for a build from nothing. */
export function discardBuilds(): void {
  rmSync(folder, { recursive: true, force: true });
}
