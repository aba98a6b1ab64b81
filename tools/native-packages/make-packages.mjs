// Makes the packages of npm that a release consists of: one for each platform of which prebuilds/ has an addon, and the main one,
// which names these:
//
//   prebuilds/linux-x64/skein.glibc.{node,json}   ->  .native-packages/linux-x64-glibc/{package.json,skein.node,skein.json,LICENSE}
//   what npm pack takes of the repository         ->  .native-packages/skein/
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PLATFORMS, platformName, prebuiltPath } from '../build-addon/platforms.mjs';
import { prebuiltStampFile } from '../build-addon/prebuilt.mjs';
import { portableSourcesHash, stampOf } from '../build-addon/stamp.mjs';
import { nativeManifest, publishedManifest } from './manifests.mjs';

/** @typedef {import('../build-addon/platforms.mjs').Platform} Platform */

/**
 * Writes the packages into folders. @param {string} root the repository @param {string} target replaced
 * @returns {{ name: string, folder: string }[]} in the order in which they have to be published: the main one last, so that no
 *   installation of it finds those missing that it names
 * @throws Error if an addon was made from other sources, or there is none
 */
export function makePackages(root, target) {
  const platforms = PLATFORMS.filter((platform) => existsSync(addonOf(root, platform)));
  if (platforms.length === 0) {
    throw new Error('prebuilds/ has no addon: "npm run prebuildify" makes that of this machine.');
  }
  const main = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const sources = portableSourcesHash(root);
  for (const platform of platforms) checkStamp(root, platform, sources);
  rmSync(target, { recursive: true, force: true });
  const made = platforms.map((platform) => {
    const folder = join(target, platformName(platform));
    mkdirSync(folder, { recursive: true });
    const addon = addonOf(root, platform);
    copyFileSync(addon, join(folder, 'skein.node'));
    copyFileSync(prebuiltStampFile(addon), join(folder, 'skein.json'));
    copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
    return { name: writeManifest(folder, nativeManifest(main, platform)), folder };
  });
  const folder = join(target, 'skein');
  copyPacked(root, folder);
  return [...made, { name: writeManifest(folder, publishedManifest(main, platforms)), folder }];
}

/** @param {string} root @param {Platform} platform */
const addonOf = (root, platform) => join(root, 'prebuilds', prebuiltPath(platform));

/**
 * What prebuilds/ has for a platform: an addon of the sources that are here, one of others, or none.
 * @param {string} root @param {Platform} platform @returns {'current' | 'stale' | 'missing'}
 */
export function stateOfAddon(root, platform, sources = portableSourcesHash(root)) {
  const addon = addonOf(root, platform);
  if (!existsSync(addon)) return 'missing';
  const stamp = prebuiltStampFile(addon);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === stampOf(sources, addon) ? 'current' : 'stale';
}

/** @param {string} root @param {Platform} platform @param {string} sources */
function checkStamp(root, platform, sources) {
  if (stateOfAddon(root, platform, sources) === 'current') return;
  throw new Error(
    `prebuilds/${prebuiltPath(platform)} was made from other sources than those that are here; make it again, or delete it.`,
  );
}

/** @param {string} folder @param {{ name: string }} manifest */
function writeManifest(folder, manifest) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest.name;
}

/** Copies what npm would put into the main package, but for addons. @param {string} root @param {string} folder */
function copyPacked(root, folder) {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 64 * 2 ** 20,
    env: { ...process.env, npm_config_loglevel: 'silent' },
  });
  const [{ files }] = JSON.parse(output);
  for (const { path } of files) {
    if (path.startsWith('prebuilds/')) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path));
  }
}
