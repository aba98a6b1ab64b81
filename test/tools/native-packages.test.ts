import { execFile, execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { addonPackages } from '../../engine/executors/native/find-addon.js';
import { PLATFORMS, packageName, packagesFor, prebuiltPath } from '../../tools/build-addon/platforms.mjs';
import { portableSourcesHash, stampOf } from '../../tools/build-addon/stamp.mjs';
import { makePackages } from '../../tools/native-packages/make-packages.mjs';
import { nativeManifest, publishedManifest } from '../../tools/native-packages/manifests.mjs';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type PublishedPackage, startRegistry } from './npm-registry.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = temporaryFolder('skein-native-packages');
const realAddon = join(root, 'build/Release/skein.node');
const HERE = packagesFor()[0]!;

/** The repository, with little to compile. */
const MANIFEST = {
  name: 'skein',
  version: '7.8.9',
  license: 'Apache-2.0',
  files: ['binding.gyp', 'engine', 'prebuilds', 'tools'],
  scripts: { install: 'node tools/build-addon.mjs' },
  dependencies: { 'node-addon-api': '*', 'node-gyp-build': '*' },
};

function smallRepository(): string {
  const path = mkdtempSync(join(folder, 'repository-'));
  mkdirSync(join(path, 'engine/executors/native'), { recursive: true });
  writeFileSync(join(path, 'engine/executors/native/addon.cpp'), '// one\n');
  writeFileSync(join(path, 'package.json'), JSON.stringify(MANIFEST));
  for (const file of ['binding.gyp', 'LICENSE']) copyFileSync(join(root, file), join(path, file));
  for (const tool of ['tools/build-addon.mjs', 'tools/build-addon']) {
    cpSync(join(root, tool), join(path, tool), { recursive: true });
  }
  return path;
}

type Platform = (typeof PLATFORMS)[number];

/** An addon compiled ahead: the real one, or for machines that are not here some bytes. */
function addPrebuilt(repository: string, platform: Platform): string {
  const addon = join(repository, 'prebuilds', prebuiltPath(platform));
  mkdirSync(dirname(addon), { recursive: true });
  if (packageName(platform) === HERE) copyFileSync(realAddon, addon);
  else writeFileSync(addon, `an addon for ${packageName(platform)}`);
  writeFileSync(addon.replace(/node$/, 'json'), stampOf(portableSourcesHash(repository), addon));
  return addon;
}

/** What npm would publish of a folder. */
function pack(source: string): PublishedPackage {
  const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: source,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename }] = JSON.parse(output) as [{ filename: string }];
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  return { manifest, tarball: join(folder, filename.replace('@', '').replace('/', '-')) };
}

async function install(packages: readonly PublishedPackage[], ...flags: string[]) {
  const project = mkdtempSync(join(folder, 'project-'));
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "version": "1.0.0" }');
  const registry = await startRegistry(packages);
  const env = {
    ...process.env,
    npm_config_registry: registry.url,
    npm_config_cache: join(project, 'cache'),
    PATH: dirname(process.execPath),
  };
  try {
    const { stdout, stderr } = await promisify(execFile)(
      'npm',
      ['install', '--foreground-scripts', '--no-audit', '--no-fund', ...flags, 'skein'],
      { cwd: project, env },
    );
    return { project, said: stdout + stderr };
  } finally {
    registry.close();
  }
}

describe('the packages of the addon', () => {
  it('have names, and the fields by which npm chooses, one for each platform', () => {
    expect(PLATFORMS.map(packageName)).toEqual([
      '@skein/native-linux-x64-glibc',
      '@skein/native-linux-x64-musl',
      '@skein/native-linux-arm64-glibc',
      '@skein/native-linux-arm64-musl',
      '@skein/native-darwin-arm64',
    ]);
    const [first, , , , last] = PLATFORMS.map((platform) => nativeManifest(MANIFEST, platform));
    expect(first).toMatchObject({ version: '7.8.9', os: ['linux'], cpu: ['x64'], libc: ['glibc'] });
    expect(last).toMatchObject({ license: 'Apache-2.0', os: ['darwin'], cpu: ['arm64'] });
    expect(last).not.toHaveProperty('libc');
  });

  it('are asked for by the published package alone, in exactly its version', () => {
    const real = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(Object.keys(real.optionalDependencies)).toEqual(['sharp']);
    const published = publishedManifest(real, PLATFORMS.slice(0, 2));
    expect(published.optionalDependencies).toEqual({
      ...real.optionalDependencies,
      '@skein/native-linux-x64-glibc': real.version,
      '@skein/native-linux-x64-musl': real.version,
    });
    expect(published.files).toEqual(real.files.filter((entry: string) => entry !== 'prebuilds'));
  });

  it('are those that the program looks for', () => {
    for (const platform of ['linux', 'darwin', 'win32', 'freebsd'] as const) {
      for (const arch of ['x64', 'arm64', 'riscv64'] as const) {
        expect(addonPackages({ platform, arch })).toEqual(packagesFor(platform, arch));
      }
    }
  });

  it('are not made of an addon from other sources, or of none', () => {
    const repository = smallRepository();
    const make = () => makePackages(repository, join(repository, 'packages'));
    expect(make).toThrow('prebuilds/ has no addon: "npm run prebuildify" makes that of this machine.');
    addPrebuilt(repository, PLATFORMS[4]!);
    appendFileSync(join(repository, 'engine/executors/native/addon.cpp'), '// two\n');
    const before = join(repository, 'packages/before');
    mkdirSync(before, { recursive: true });
    expect(make).toThrow(/^prebuilds\/darwin-arm64\/skein\.glibc\.node was made from other sources/);
    expect(existsSync(before)).toBe(true);
  });
});

describe('an installation from a registry', () => {
  it('takes the package that fits and compiles nothing; without it, it says so', async () => {
    const repository = smallRepository();
    // The one of this machine, and two that npm has to pass over: of another C library and of another system.
    const platforms = [PLATFORMS[0]!, PLATFORMS[1]!, PLATFORMS[4]!];
    for (const platform of platforms) addPrebuilt(repository, platform);
    const made = makePackages(repository, join(repository, 'packages'));
    expect(made.map(({ name }) => name)).toEqual([...platforms.map(packageName), 'skein']);
    const libraries = Object.keys(MANIFEST.dependencies).map((name) => join(root, 'node_modules', name));
    const packages = [...made.map((one) => one.folder), ...libraries].map(pack);
    const { project, said } = await install(packages);
    expect(said).toContain(`skein: the prebuilt addon fits (../${HERE}/skein.node); nothing is compiled\n`);
    const modules = join(project, 'node_modules');
    expect(readdirSync(join(modules, '@skein')).map((name) => `@skein/${name}`)).toEqual([HERE]);
    expect([existsSync(join(modules, 'skein/build')), existsSync(join(modules, 'skein/prebuilds'))]).toEqual([
      false,
      false,
    ]);
    const without = await install(packages, '--omit=optional');
    expect(without.said).toMatch(
      /^skein: no prebuilt addon is used: npm has not installed @skein\/native-\S+ or /m,
    );
    expect(existsSync(join(without.project, 'node_modules/skein/package.json'))).toBe(true);
  });
});
