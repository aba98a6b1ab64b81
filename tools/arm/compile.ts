import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { headersFolder } from '../build-addon/aside.mjs';
import { folder, root } from './emulated-machine.js';

/** Quick to compile: what the emulator runs is judged by its bits, not by its speed. */
const FLAGS = '-O1 -g0';

/**
 * The addon for ARM, compiled by the cross compiler as npm's install compiles it on such a machine. node-gyp-build loads it where
 * SKEIN_PREBUILD names the folder that is returned.
 * @throws where the compiler fails; its words are on stderr
 */
export async function compileAddon(flags = FLAGS): Promise<string> {
  const aside = join(folder, 'addon');
  mkdirSync(aside, { recursive: true });
  for (const name of ['binding.gyp', 'package.json']) cpSync(join(root, name), join(aside, name));
  if (!existsSync(join(aside, 'engine')))
    symlinkSync(join(root, 'engine'), join(aside, 'engine'), 'junction');
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const headers = headersFolder();
  const nodedir = headers === null ? [] : [`--nodedir=${headers}`];
  const tools = { CC: 'aarch64-linux-gnu-gcc', CXX: 'aarch64-linux-gnu-g++', AR: 'aarch64-linux-gnu-ar' };
  const env = { ...process.env, ...tools, CXXFLAGS: flags, LINK: 'aarch64-linux-gnu-g++' };
  const args = [gyp, 'configure', 'build', '--arch=arm64', '-j', 'max', ...nodedir];
  const child = spawn(process.execPath, args, { cwd: aside, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`The compiler for ARM ended with ${code ?? signal}.`);
  return aside;
}
