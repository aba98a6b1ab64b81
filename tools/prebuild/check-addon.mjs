// Whether an addon that was compiled for another platform can be loaded there at all: what can be said without that platform.
import { readAddon } from './read-addon.mjs';

/** @typedef {import('../build-addon/platforms.mjs').Platform} Platform */

/** The system's own libraries, which every installation has. The C++ library is in the addon. */
const LIBRARIES = {
  glibc: /^(lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux.*\.so\.\d)$/,
  musl: /^libc\.so$/,
  darwin: /^\/usr\/lib\/libSystem\.B\.dylib$/,
};

/** Functions of the Node.js that loads the addon. */
const OF_NODE = /^(napi|node_api)_/;
/** Functions of C++: all of them are in the addon. */
const OF_CPP = /^_Z/;

/** What Node.js calls, of its interface from version 8 on. */
const ENTRY = 'napi_register_module_v1';

/**
 * @param {Buffer} bytes of the addon's file @param {Platform} platform
 * @param {string} [glibc] the oldest one that has to do, such as "2.28"
 * @returns {{ libraries: string[], functionsOfNode: number }} what it asks for
 * @throws Error with what keeps it from being loaded
 */
export function checkAddon(bytes, { os, cpu, libc }, glibc) {
  const addon = readAddon(bytes);
  const { libraries, wanted } = addon;
  if (addon.os !== os || addon.cpu !== cpu) throw new Error(`is for ${addon.os} on ${addon.cpu}`);
  if (!addon.isLibrary) throw new Error('is no library that a program could load');
  const allowed = LIBRARIES[libc ?? 'darwin'];
  const others = libraries.filter((name) => !allowed.test(name));
  if (others.length > 0) throw new Error(`asks for ${others.join(', ')}, which not every system has`);
  // On macOS the library of each other function is named, and the linker has looked for it there.
  const missing = wanted.filter((name) => !OF_NODE.test(name) && (os === 'darwin' || OF_CPP.test(name)));
  if (missing.length > 0) throw new Error(`asks for ${missing.join(', ')}, which no library defines`);
  const tooNew = glibc === undefined ? [] : addon.versions.filter((name) => isNewer(name, glibc));
  if (tooNew.length > 0) throw new Error(`asks for ${tooNew.join(', ')}, but has to do with glibc ${glibc}`);
  if (!addon.defined.includes(ENTRY)) throw new Error(`has no ${ENTRY}, which Node.js calls`);
  return { libraries, functionsOfNode: wanted.filter((name) => OF_NODE.test(name)).length };
}

/** @param {string} version of a function, such as "GLIBC_2.34" @param {string} glibc */
function isNewer(version, glibc) {
  const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined) return false;
  const [most, least] = glibc.split('.').map(Number);
  return Number(major) > most || (Number(major) === most && Number(minor) > least);
}
