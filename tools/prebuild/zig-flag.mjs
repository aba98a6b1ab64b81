/**
 * A flag of GCC and clang as zig takes it. Zig reads the version of an architecture as one more extension of a processor, by a name of its
 * own: -march=armv8.2-a+dotprod is -mcpu=generic+v8_2a+dotprod.
 * @param {string} flag
 */
export function zigFlag(flag) {
  const [, version, extensions] = /^-march=armv(\d+\.\d+)-a(.*)$/.exec(flag) ?? [];
  return version === undefined ? flag : `-mcpu=generic+v${version.replace('.', '_')}a${extensions}`;
}
