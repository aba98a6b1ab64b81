// Builds the native addon with node-gyp, unless the one that is there is made of the same sources. As npm's install
// script it must not fail the installation: without a compiler the package still installs, and `skein serve` says
// what is missing. With --required (npm run build:native) a failed build is an error; --force compiles in any case.
//
// It is compiled in a folder aside and renamed into its place, so that an interrupted build leaves the addon that was
// there before:
//
//   .build-addon-PID/{binding.gyp, engine, package.json, build/Release/skein.node}  ->  build/Release/skein.node
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { say } from './build-addon/say.mjs';
import { isCurrent, sourcesHash, stampOf } from './build-addon/stamp.mjs';

const required = process.argv.includes('--required');
const forced = process.argv.includes('--force');
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const release = join(root, 'build/Release');
const addonFile = join(release, 'skein.node');
const stampFile = join(release, 'skein.json');
const MARK = '.build-addon-';
const aside = join(root, `${MARK}${process.pid}`);

function nodeGyp() {
  const require = createRequire(import.meta.url);
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    return process.env.npm_config_node_gyp; // the copy that npm itself carries
  }
}

function headersBesideNode() {
  const prefix = join(dirname(process.execPath), '..');
  return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

/** Folders of builds that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(root)) {
    const pid = name.startsWith(MARK) ? Number(name.slice(MARK.length)) : Number.NaN;
    if (!Number.isInteger(pid) || isAlive(pid)) continue;
    rmSync(join(root, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** node-gyp builds in the folder of binding.gyp only. */
function makeAside() {
  rmSync(aside, { recursive: true, force: true }); // of an earlier process with this number
  mkdirSync(aside);
  cpSync(join(root, 'binding.gyp'), join(aside, 'binding.gyp'));
  cpSync(join(root, 'package.json'), join(aside, 'package.json'));
  symlinkSync(join(root, 'engine'), join(aside, 'engine'), 'junction');
}

/** Runs node-gyp to its end: its status and what it wrote on stderr. A signal ends both, and nothing stays behind. */
function compile(gyp) {
  const child = spawn(process.execPath, [gyp, 'rebuild', '-j', 'max', ...headersBesideNode()], {
    cwd: aside,
    stdio: required ? 'inherit' : ['ignore', 'ignore', 'pipe'],
    detached: process.platform !== 'win32', // a group of its own: make and the compilers end with it
  });
  for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
    process.on(signal, () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        child.kill('SIGKILL');
      }
      rmSync(aside, { recursive: true, force: true });
      process.exit(128 + number);
    });
  }
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ status: error.message, stderr }));
    child.on('close', (code, signal) => resolve({ status: code ?? signal, stderr }));
  });
}

/** The stamp goes first and comes last: an addon without one is never taken for current. */
function publish(sources) {
  mkdirSync(release, { recursive: true });
  const built = join(aside, 'build/Release/skein.node');
  const stamp = stampOf(sources, built);
  rmSync(stampFile, { force: true });
  renameSync(built, addonFile);
  writeFileSync(stampFile, stamp);
}

function giveUp(reason) {
  say(
    `the native addon was not built (${reason}). It needs a C++20 compiler, make and Python 3: on Debian or Ubuntu "apt-get install g++ make python3", on Fedora "dnf install gcc-c++ make python3"; then run "npm rebuild skein", or "npm run build:native" in a checkout.`,
  );
  return required ? 1 : 0;
}

async function main() {
  const sources = sourcesHash(root);
  if (!forced && isCurrent(sources, addonFile, stampFile)) {
    say('the native addon is up to date');
    return 0;
  }
  const gyp = nodeGyp();
  if (!gyp) return giveUp('node-gyp was not found');
  removeAbandoned();
  const startMs = performance.now();
  say('compiling the native addon; this takes some minutes');
  makeAside();
  try {
    const { status, stderr } = await compile(gyp);
    if (status !== 0) {
      const lines = stderr.split('\n').filter((line) => /error|not found|gyp ERR! stack/i.test(line));
      return giveUp(lines[0]?.trim() || `node-gyp ended with ${status}`);
    }
    publish(sources);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  const seconds = Math.round((performance.now() - startMs) / 1000);
  say(`compiled the native addon in ${seconds} s (${(statSync(addonFile).size / 2 ** 20).toFixed(1)} MiB)`);
  return 0;
}

process.exitCode = await main().catch((error) => giveUp(error.message));
