// The platforms for which the addon is compiled ahead, each with a package of npm that holds nothing else:
//
//   @skein/native-linux-x64-glibc/{package.json: os, cpu, libc; skein.node; skein.json}
//
// The names have a scope, which belongs to one owner: code that runs in the process of every user who
// installs Skein must not come from a name that anyone could take. Windows on x64 is planned: the addon has
// not been compiled there.

/** @typedef {{ os: string, cpu: string, libc?: 'glibc' | 'musl' }} Platform */

/** @type {readonly Platform[]} */
export const PLATFORMS = [
  { os: 'linux', cpu: 'x64', libc: 'glibc' },
  { os: 'linux', cpu: 'x64', libc: 'musl' },
  { os: 'linux', cpu: 'arm64', libc: 'glibc' },
  { os: 'linux', cpu: 'arm64', libc: 'musl' },
  { os: 'darwin', cpu: 'arm64' },
];

/** @param {Platform} platform */
export const platformName = ({ os, cpu, libc }) =>
  [os, cpu, libc].filter((part) => part !== undefined).join('-');

/** @param {Platform} platform */
export const packageName = (platform) => `@skein/native-${platformName(platform)}`;

/** Where npm run prebuildify puts the addon, below prebuilds/; node-gyp-build knows these names. @param {Platform} platform */
export const prebuiltPath = ({ os, cpu, libc = 'glibc' }) => `${os}-${cpu}/skein.${libc}.node`;

/** The packages that may fit a machine: npm installs the one of its C library, other package managers both. */
export const packagesFor = (os = process.platform, cpu = process.arch) =>
  PLATFORMS.filter((platform) => platform.os === os && platform.cpu === cpu).map(packageName);
