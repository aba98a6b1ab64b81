// Makes a release:
//
//     npm run release -- --dry-run     tries everything, and changes and publishes nothing
//     npm run release                  in CI, of a commit whose version is that of the package (npm run release -- version)
//     npm run release -- version       takes the changes in .changeset into package.json and CHANGELOG.md, to be committed
//
// A release is several packages: the addons of the platforms that prebuilds/ has, and then the main one, which names them
// (tools/native-packages). Publishing is npm's own `npm publish --provenance`: npm signs a statement that this tarball was built from this commit by
// this run of CI, which needs CI's identity (an id-token) and a repository in package.json.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PLATFORMS, platformName } from '../build-addon/platforms.mjs';
import { BUILT_FROM, checkedOut } from '../dist-folder.mjs';
import { makePackages, stateOfAddon } from '../native-packages/make-packages.mjs';
import { changelogOfRelease, problemsOfRelease } from './plan.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values, positionals } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false } },
  allowPositionals: true,
});
const isDry = values['dry-run'];

const read = (path) => readFileSync(join(root, path), 'utf8');
const output = (command, args) =>
  execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const run = (command, args, cwd = root) => {
  console.log(`\n> ${command} ${args.join(' ')}`);
  execFileSync(command, args, { cwd, stdio: 'inherit' });
};

if (positionals[0] === 'version') version();
else if (positionals.length === 0) release();
else {
  console.error(`release: ${positionals[0]} is no step of a release; there is version, or none.`);
  process.exitCode = 2;
}

function version() {
  run('npx', ['changeset', 'version']);
  const { version } = JSON.parse(read('package.json'));
  const today = new Date().toISOString().slice(0, 10);
  writeFileSync(join(root, 'CHANGELOG.md'), changelogOfRelease(read('CHANGELOG.md'), version, today));
  run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--omit-lockfile-registry-resolved']);
}

function release() {
  const manifest = JSON.parse(read('package.json'));
  const addonsThatAre = (state) =>
    PLATFORMS.filter((platform) => stateOfAddon(root, platform) === state).map(platformName);
  const missingAddons = addonsThatAre('missing');
  const staleAddons = addonsThatAre('stale');
  const problems = problemsOfRelease({
    manifest,
    changelog: read('CHANGELOG.md'),
    isClean: output('git', ['status', '--porcelain']).trim() === '',
    built: builtFrom(),
    commit: checkedOut(root)?.commit ?? '',
    missingAddons,
    staleAddons,
    hasIdentity:
      process.env.ACTIONS_ID_TOKEN_REQUEST_URL !== undefined || process.env.SIGSTORE_ID_TOKEN !== undefined,
    pending: pendingChanges(),
  });
  tell(problems);
  if (problems.length > 0 && !isDry) {
    process.exitCode = 1;
    return;
  }
  run('npx', ['publint', '--strict']);
  // A dry run packs and checks what would be sent, and signs nothing; without addons that fit it tries the main package alone.
  const flags = ['--ignore-scripts', ...(isDry ? ['--dry-run', '--provenance=false'] : ['--provenance'])];
  const packages =
    missingAddons.length === PLATFORMS.length || staleAddons.length > 0
      ? [{ folder: root }]
      : makePackages(root, join(root, '.native-packages'));
  for (const { folder } of packages) run('npm', ['publish', ...flags], folder);
  console.log(
    isDry
      ? `\nskein ${manifest.version} was tried, not published. ${problems.length === 0 ? 'Nothing stands in the way.' : `Still to be done: ${problems.length}, listed at the top.`}`
      : `\nskein ${manifest.version} is published.`,
  );
}

/** Says what has still to be done, by who or what can do it. */
function tell(problems) {
  const titles = { 'fill in': 'To be filled in', run: 'To be run before', 'in CI': 'Only in CI' };
  for (const [kind, title] of Object.entries(titles)) {
    const words = problems.filter((problem) => problem.kind === kind).map((problem) => `  ${problem.words}`);
    if (words.length > 0) console.error(`release: ${title}:\n${words.join('\n')}`);
  }
}

/** What dist/ was built from; 'nothing': it was not built, null: it does not say. */
function builtFrom() {
  try {
    return JSON.parse(read(`dist/${BUILT_FROM}`));
  } catch {
    return existsSync(join(root, 'dist/bin/skein.js')) ? null : 'nothing';
  }
}

/** Changes that no version has yet. */
function pendingChanges() {
  const names = output('git', ['ls-files', '.changeset']).split('\n');
  return names.filter((name) => name.endsWith('.md') && !name.endsWith('README.md'));
}
