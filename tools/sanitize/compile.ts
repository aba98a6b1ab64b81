import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headersFolder } from '../build-addon/aside.mjs';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folder of compiled files; they stay, so that a second run compiles only what has changed. */
const folder = join(root, 'build/sanitize');

const native = 'engine/executors/native';

/** Without optimisation the kernels compile in a tenth of the time, and every access is one that the source spells out. */
const PLAIN = '-O0 -g1';
/**
 * Undefined behaviour ends the process, as an access out of bounds does.
 */
const ADDRESS = `${PLAIN} -fsanitize=address,undefined -fno-sanitize-recover=undefined`;
/**
 * Of a short run: what AddressSanitizer stops as well, at the access (null pointers, pointers that wrap, objects that are too small), is
 * not checked a second time, which is a quarter of the time to compile.
 */
const SHORT_ADDRESS = `${ADDRESS} -fno-sanitize=null,pointer-overflow,object-size,vptr`;

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

/** Targets of binding.gyp with an instruction set that the sources of the ordinary addon know and this processor does not run. */
function targetsThatCannotRun(gyp: string): string[] {
  const addon = createRequire(import.meta.url)('node-gyp-build')(root) as { kernels: { names(): string[] } };
  const runs = new Set(['plain', ...addon.kernels.names()]);
  const targets = [...gyp.matchAll(/"target_name": "skein_(\w+)"/g)].map(([, name]) => name!);
  return targets.filter((name) => !runs.has(name)).map((name) => `skein_${name}`);
}

/** binding.gyp with AddressSanitizer's flags for all that can run here; the rest is there to be linked. */
function sanitizedGyp(gyp: string, isShort: boolean): string {
  const unable = targetsThatCannotRun(gyp).join(' ');
  const flagsOf = (flags: string) => `{ "cflags_cc": ${JSON.stringify(flags.split(' '))} }`;
  // A target's own flags come before these, so that this level of optimisation holds.
  const conditions = `[["_target_name in '${unable}'.split()", ${flagsOf(PLAIN)}, ${flagsOf(isShort ? SHORT_ADDRESS : ADDRESS)}]]`;
  return gyp.replace('"target_defaults": {', (begin) => `${begin}\n    "target_conditions": ${conditions},`);
}

/** A folder of links to the addon's sources, but those that are left out. */
function linkSources(aside: string, isLeftOut: (kernel: string) => boolean): void {
  const folders = [native, `${native}/kernels`];
  for (const at of folders) {
    mkdirSync(join(aside, at), { recursive: true });
    const linked = new Set(readdirSync(join(aside, at)));
    for (const name of readdirSync(join(root, at))) {
      if (linked.has(name) || folders.includes(`${at}/${name}`) || isLeftOut(name)) continue;
      symlinkSync(join(root, at, name), join(aside, at, name));
    }
  }
}

/**
 * The addon with AddressSanitizer and UndefinedBehaviorSanitizer, all instruction sets of it that run here, in a folder of its own.
 * node-gyp-build loads it where SKEIN_PREBUILD names that folder, which is returned. A short one is without the emulated processors: no user
 * runs them, their layouts are those of AVX-512, and they are a fifth of the time to compile and most of that of the kernels' tests.
 */
export async function compileAddon({ isShort = false } = {}): Promise<string> {
  const aside = join(folder, isShort ? 'addon-short' : 'addon');
  linkSources(aside, (kernel) => isShort && kernel.startsWith('emulated'));
  copyFileSync(join(root, 'package.json'), join(aside, 'package.json'));
  writeChanged(
    join(aside, 'binding.gyp'),
    sanitizedGyp(readFileSync(join(root, 'binding.gyp'), 'utf8'), isShort),
  );
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const headers = headersFolder();
  const nodedir = headers === null ? [] : [`--nodedir=${headers}`];
  const env = { ...process.env, LDFLAGS: '-fsanitize=address,undefined' };
  await runTool(process.execPath, [gyp, 'configure', 'build', '-j', 'max', ...nodedir], { cwd: aside, env });
  return aside;
}

/** Leaves a file alone that has this text, so that what depends on it is not compiled again. */
function writeChanged(path: string, text: string): void {
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
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
