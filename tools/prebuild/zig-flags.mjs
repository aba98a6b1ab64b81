/** A flag that clang has not. */
const OF_GCC = '-fno-schedule-insns';

/**
 * Flags of GCC and clang as zig takes them. Zig reads the version of an architecture as one more extension of a processor, by a name of its
 * own: -march=armv8.2-a+dotprod is -mcpu=generic+v8_2a+dotprod.
 * @param {readonly string[]} flags
 */
export function zigFlags(flags) {
  return flags.filter((flag) => flag !== OF_GCC).map(zigFlag);
}

/** @param {string} flag */
function zigFlag(flag) {
  const [, version, extensions] = /^-march=armv(\d+\.\d+)-a(.*)$/.exec(flag) ?? [];
  return version === undefined ? flag : `-mcpu=generic+v${version.replace('.', '_')}a${extensions}`;
}
