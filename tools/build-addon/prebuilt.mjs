// Addons that were compiled ahead: in the package itself, in the layout of node-gyp-build (npm run prebuildify), and in packages
// of their own, of which npm installs the one that fits (npm run native-packages):
//
//   prebuilds/linux-x64/skein.glibc.node    the addon for a system, an architecture and a C library
//   prebuilds/linux-x64/skein.glibc.json    {sources, addon, bytes}: hash of what it was made from, hash and length of the addon itself
//   node_modules/@skein/native-linux-x64-glibc/skein.{node,json}    the same
//
// N-API keeps it good for every Node.js that the package takes, and it chooses among instruction sets when it starts.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packagesFor } from './platforms.mjs';
import { portableSourcesHash, stampOf } from './stamp.mjs';

/** The file with the hashes of a prebuilt addon. */
export const prebuiltStampFile = (addonFile) => addonFile.replace(/\.node$/, '.json');

/** Loads an addon. */
const LOAD = 'require(process.argv[1]);';

/**
 * The prebuilt addon that fits this machine and the sources that are here: `{ path }`; `{ reason }` where there are some
 * and none can be used; `{}` where there are none, or `npm install --build-from-source` asks for another. `isForOthers`: npm has
 * installed that of another platform, for which this installation is.
 */
export function prebuiltAddon(root) {
  const fromSource = process.env.npm_config_build_from_source;
  if (fromSource === 'true' || fromSource === 'skein') return {};
  const require = createRequire(join(root, 'package.json'));
  const paths = [ofPackageItself(require, root), ...ofOtherPackages(require)].filter((path) => path !== null);
  const reasons = [];
  for (const path of paths) {
    const problem = problemOf(root, path);
    if (problem === null) return { path };
    reasons.push(`${path} ${problem}`);
  }
  return reasons.length === 0 ? unfit(root) : { reason: reasons.join('; ') };
}

/** What node-gyp-build chooses among prebuilds/. */
function ofPackageItself(require, root) {
  const asked = process.env.PREBUILDS_ONLY;
  process.env.PREBUILDS_ONLY = '1'; // read when the module is loaded
  try {
    return require('node-gyp-build/node-gyp-build.js').resolve(root);
  } catch {
    return null; // it is not installed, or there is none that fits
  } finally {
    if (asked === undefined) delete process.env.PREBUILDS_ONLY;
    else process.env.PREBUILDS_ONLY = asked;
  }
}

function ofOtherPackages(require) {
  return packagesFor().map((name) => addonIn(require, name));
}

/** Path of a package's addon; null: it is not installed. */
function addonIn(require, name) {
  try {
    return require.resolve(`${name}/skein.node`);
  } catch {
    return null;
  }
}

/** Why an addon cannot be used; null: it can. */
function problemOf(root, path) {
  // It is tried in a process of its own: one made for another machine may do worse than throw.
  const tried = spawnSync(process.execPath, ['-e', LOAD, path], { encoding: 'utf8' });
  if (tried.status !== 0) {
    const reason = /^(?:\w*Error): (.*)$/m.exec(tried.stderr)?.[1] ?? `it ends Node.js with ${tried.signal}`;
    return `does not load here: ${reason}`;
  }
  try {
    const stamp = readFileSync(prebuiltStampFile(path), 'utf8');
    if (stamp === stampOf(portableSourcesHash(root), path)) return null;
  } catch {
    // An addon without hashes belongs to no known build.
  }
  return 'was made from other sources';
}

/**
 * A published package names the packages of its addon; where npm has installed none of them, the message says
 * so.
 */
function unfit(root) {
  const { optionalDependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys(optionalDependencies).filter((name) => name.startsWith('@skein/native-'));
  if (names.length === 0) return {};
  const here = `${process.platform}-${process.arch}`;
  const require = createRequire(join(root, 'package.json'));
  const installed = names.filter((name) => addonIn(require, name) !== null);
  if (installed.length > 0) {
    const reason = `npm has installed ${installed.join(' and ')}, for another platform than ${here} (--os, --cpu or --libc)`;
    return { reason, isForOthers: true };
  }
  const fitting = packagesFor().filter((name) => names.includes(name));
  if (fitting.length === 0) {
    const others = names.map((name) => name.replace('@skein/native-', '')).join(', ');
    return { reason: `there is none for ${here}, but ${others}` };
  }
  const wanted = fitting.map((name) => `"npm install ${name}@${optionalDependencies[name]}"`).join(' or ');
  return {
    reason: `npm has not installed ${fitting.join(' or ')}, as with --omit=optional; ${wanted} does, and nothing has to be compiled`,
  };
}
