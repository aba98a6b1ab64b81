// Builds the native addon with node-gyp, unless the one that is there is made of the same sources, or one that was
// compiled ahead fits (build-addon/prebuilt.mjs). As npm's install script it must not fail the installation: without a compiler
// the package still installs, and `skein serve` says what is missing. With --required (npm run build:native) a failed build is an error; --force compiles in any case.
//
// It is compiled in a folder aside and renamed into its place, so that an interrupted build leaves the addon that was
// there before:
//
//   .build-addon-PID/{binding.gyp, engine, package.json, build/Release/skein.node}  ->  build/Release/skein.node
import { spawn } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folderAside, headersFolder, makeAside, removeAbandoned, removeAside } from './build-addon/aside.mjs';
import { prebuiltAddon } from './build-addon/prebuilt.mjs';
import { tellProgress } from './build-addon/progress.mjs';
import { say } from './build-addon/say.mjs';
import { isCurrent, sourcesHash, stampOf } from './build-addon/stamp.mjs';

const required = process.argv.includes('--required');
const forced = process.argv.includes('--force');
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const release = join(root, 'build/Release');
const addonFile = join(release, 'skein.node');
const stampFile = join(release, 'skein.json');
const aside = folderAside(root);

function nodeGyp() {
  const require = createRequire(import.meta.url);
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    return process.env.npm_config_node_gyp; // the copy that npm itself carries
  }
}

/**
 * Runs node-gyp to its end: its status and what it wrote on stderr. A signal ends both, and nothing is left
 * over.
 */
function compile(gyp) {
  const headers = headersFolder();
  const flags = headers === null ? [] : [`--nodedir=${headers}`];
  const child = spawn(process.execPath, [gyp, 'rebuild', '-j', 'max', ...flags], {
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
      removeAside(root);
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

/** The line that says most: what was not found, else the first error. */
function reasonOf(stderr) {
  const lines = stderr
    .split('\n')
    .filter((line) => /error|not found|could not find|no such file/i.test(line));
  const missing = lines.find((line) => /not found|could not find|: No such file or directory$/i.test(line));
  return (missing ?? lines[0])?.replace(/^gyp ERR! (stack )?/, '').trim();
}

/** True if this Node.js is older than the package needs; npm itself only warns. */
function isTooOld() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major < 20 || (major === 20 && minor < 19);
}

function giveUp(reason) {
  say(
    `the native addon was not built (${reason}). It needs a C++20 compiler, make and Python 3: on Debian or Ubuntu "apt-get install g++ make python3", on Fedora "dnf install gcc-c++ make python3", on Alpine "apk add g++ make python3", on a Mac "xcode-select --install"; then run "npm rebuild skein", or "npm run build:native" in a checkout.`,
  );
  return required ? 1 : 0;
}

async function main() {
  if (isTooOld()) {
    say(
      `this is Node.js ${process.versions.node}, and Skein needs 20.19 or newer; install it again with one`,
    );
    return required ? 1 : 0;
  }
  const sources = sourcesHash(root);
  if (!forced && isCurrent(sources, addonFile, stampFile)) {
    say('the native addon is up to date');
    return 0;
  }
  if (!required && !forced) {
    const { path, reason, isForOthers } = prebuiltAddon(root);
    if (path) {
      // One in build/Release goes before all others, so that a stale one, or one of another machine, must not stay there.
      rmSync(stampFile, { force: true });
      rmSync(addonFile, { force: true });
      say(`the prebuilt addon fits (${relative(root, path)}); nothing is compiled`);
      return 0;
    }
    if (reason) say(`no prebuilt addon is used: ${reason}`);
    if (isForOthers) return 0;
  }
  const gyp = nodeGyp();
  if (!gyp) return giveUp('node-gyp was not found');
  removeAbandoned(root);
  const startMs = performance.now();
  say('compiling the native addon; this takes some minutes');
  makeAside(root);
  // With --required node-gyp reports each file itself.
  const endProgress = required ? () => {} : tellProgress(aside, say);
  try {
    const { status, stderr } = await compile(gyp);
    if (status !== 0) {
      return giveUp(reasonOf(stderr) ?? `node-gyp ended with ${status}`);
    }
    publish(sources);
  } finally {
    endProgress();
    removeAside(root);
  }
  const seconds = Math.round((performance.now() - startMs) / 1000);
  say(`compiled the native addon in ${seconds} s (${(statSync(addonFile).size / 2 ** 20).toFixed(1)} MiB)`);
  return 0;
}

/** A folder that cannot be written is no matter of the compiler. */
function failedBy({ code, message }) {
  if (!['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].includes(code)) return giveUp(message);
  say(`the native addon was not built, since its folder cannot be written (${message})`);
  return required ? 1 : 0;
}

process.exitCode = await main().catch(failedBy);
