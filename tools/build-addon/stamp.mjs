// Stamps that name the sources of a compiled addon, so that it is compiled again only when they have changed:
//
//   build/Release/skein.node    the addon
//   build/Release/skein.json    {sources, addon, bytes}: hash of all that went into it, hash and length of the addon itself
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Variables that change what a compiler makes of the same sources. */
const COMPILER_VARIABLES = ['CC', 'CXX', 'CFLAGS', 'CXXFLAGS', 'CPPFLAGS', 'LDFLAGS', 'GYP_DEFINES'];

const sha256 = (data) => createHash('sha256').update(data).digest('hex');

/** Emulated processors, which only tests ask for: files that the package does not have. */
const FOR_TESTS = /^kernels\/(emulated|simd_emulated_)/;

/** The sources to compile and their options, as far as this repository sets them. */
function ownFacts(root) {
  const native = join(root, 'engine/executors/native');
  const sources = readdirSync(native, { recursive: true })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(cpp|h)$/.test(name))
    .sort()
    .map((name) => [name, sha256(readFileSync(join(native, name)))]);
  return { sources, settings: sha256(readFileSync(join(root, 'binding.gyp'))) };
}

/** Hash of the package's sources and settings alone, the same on every machine, in a checkout and where the package is installed. */
export function portableSourcesHash(root) {
  const { sources, settings } = ownFacts(root);
  return sha256(JSON.stringify({ sources: sources.filter(([name]) => !FOR_TESTS.test(name)), settings }));
}

/** Hash of sources, settings, and of what the compiler and Node.js bring along. */
export function sourcesHash(root) {
  const require = createRequire(join(root, 'package.json'));
  const facts = {
    ...ownFacts(root),
    nodeAddonApi: require('node-addon-api/package.json').version,
    node: [process.platform, process.arch, process.versions.modules],
    variables: COMPILER_VARIABLES.map((name) => process.env[name] ?? null),
  };
  return sha256(JSON.stringify(facts));
}

/** With its length, by which a program knows one that is cut off (engine/executors/native/find-addon.ts). */
export function stampOf(sources, addonFile) {
  const addon = readFileSync(addonFile);
  return JSON.stringify({ sources, addon: sha256(addon), bytes: addon.length });
}

/** True if the addon was compiled from these sources, is undamaged, and loads on this machine. */
export function isCurrent(sources, addonFile, stampFile) {
  try {
    if (readFileSync(stampFile, 'utf8') !== stampOf(sources, addonFile)) return false;
  } catch {
    return false;
  }
  // The addon is tried in a process of its own: one made for another machine may do worse than throw.
  return spawnSync(process.execPath, ['-e', `require(${JSON.stringify(addonFile)})`]).status === 0;
}
