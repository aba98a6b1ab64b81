// Addons that were compiled ahead (npm run prebuildify), in the layout of node-gyp-build, which loads the one that fits:
//
//   prebuilds/linux-x64/skein.glibc.node    the addon for a system, an architecture and a C library
//   prebuilds/linux-x64/skein.glibc.json    {sources, addon}: hash of what it was made from, hash of the addon itself
//
// N-API keeps it good for every Node.js that the package takes, and it chooses among instruction sets when it starts.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { portableSourcesHash, stampOf } from './stamp.mjs';

/** The file with the hashes of a prebuilt addon. */
export const prebuiltStampFile = (addonFile) => addonFile.replace(/\.node$/, '.json');

/** Loads what node-gyp-build chooses among prebuilds/, and prints its path. */
const LOAD = `
const { resolve } = require(process.argv[1]);
const path = resolve(process.argv[2]);
process.stdout.write(path);
require(path);
`;

/**
 * The prebuilt addon that fits this machine and the sources that are here: `{ path }`; `{ reason }` where there are some
 * and none can be used; `{}` where there are none, or `npm install --build-from-source` asks for another.
 */
export function prebuiltAddon(root) {
  const fromSource = process.env.npm_config_build_from_source;
  if (fromSource === 'true' || fromSource === 'skein') return {};
  const require = createRequire(join(root, 'package.json'));
  let nodeGypBuild;
  try {
    nodeGypBuild = require.resolve('node-gyp-build/node-gyp-build.js');
  } catch {
    return {};
  }
  // The addon is tried in a process of its own: one made for another machine may do worse than throw.
  const tried = spawnSync(process.execPath, ['-e', LOAD, nodeGypBuild, root], {
    encoding: 'utf8',
    env: { ...process.env, PREBUILDS_ONLY: '1' },
  });
  const path = tried.stdout ?? '';
  if (path === '') return {};
  if (tried.status !== 0) {
    const reason = /^(?:\w*Error): (.*)$/m.exec(tried.stderr)?.[1] ?? `it ends Node.js with ${tried.signal}`;
    return { reason: `${path} does not load here: ${reason}` };
  }
  try {
    const stamp = readFileSync(prebuiltStampFile(path), 'utf8');
    if (stamp === stampOf(portableSourcesHash(root), path)) return { path };
  } catch {
    // An addon without hashes is nobody's.
  }
  return { reason: `${path} was made from other sources` };
}
