import { packageName, platformName } from '../build-addon/platforms.mjs';

/** @typedef {import('../build-addon/platforms.mjs').Platform} Platform */

/** Of the main package's manifest, what the packages of its addon have too. */
const SHARED = ['license', 'repository', 'homepage', 'bugs', 'engines', 'publishConfig'];

/**
 * The manifest of a platform's package. Its version is always the main package's, which asks for exactly that one.
 * @param {Record<string, unknown> & { version: string }} main @param {Platform} platform
 */
export function nativeManifest(main, platform) {
  const { os, cpu, libc } = platform;
  const shared = SHARED.filter((field) => main[field] !== undefined).map((field) => [field, main[field]]);
  return {
    name: packageName(platform),
    version: main.version,
    description: `The native addon of skein for ${platformName(platform)}, which npm installs with it`,
    ...Object.fromEntries(shared),
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    main: 'skein.node',
    files: ['skein.node', 'skein.json', 'LICENSE'],
  };
}

/**
 * The main package's manifest as it is published: it names the packages of its addon, and contains no addon itself.
 *
 * The manifest of the repository does not name them: `npm ci` refuses a lock file without the packages that package.json names,
 * and no lock file can have packages which are not published yet, as those of the next version.
 * @param {Record<string, unknown> & { version: string, files: string[], optionalDependencies?: Record<string, string> }} main @param {readonly Platform[]} platforms
 */
export function publishedManifest(main, platforms) {
  return {
    ...main,
    files: main.files.filter((entry) => entry !== 'prebuilds'),
    optionalDependencies: {
      ...main.optionalDependencies,
      ...Object.fromEntries(platforms.map((platform) => [packageName(platform), main.version])),
    },
  };
}
