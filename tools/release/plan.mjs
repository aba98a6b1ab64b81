/**
 * What has to happen before a release: `fill in`, text that only its owner knows; `run`, a command of this repository;
 * `in CI`, what a run of CI has and a machine at home does not.
 * @typedef {{ kind: 'fill in' | 'run' | 'in CI', words: string }} Problem
 */

/**
 * What stands in the way of publishing, in sentences.
 * @param {{ manifest: { name: string, version: string, private?: boolean, repository?: unknown, publishConfig?: { provenance?: boolean } },
 *   changelog: string, isClean: boolean, built: { commit: string, isClean: boolean } | 'nothing' | null,
 *   commit: string, missingAddons: readonly string[], staleAddons: readonly string[], hasIdentity: boolean, pending: readonly string[] }} found
 * @returns {Problem[]}
 */
export function problemsOfRelease({
  manifest,
  changelog,
  isClean,
  built,
  commit,
  missingAddons,
  staleAddons,
  hasIdentity,
  pending,
}) {
  const { version, repository, publishConfig } = manifest;
  /** @type {[isWell: boolean, kind: Problem['kind'], words: string][]} */
  const checks = [
    [isRepository(repository), 'fill in', wordsOfRepository(repository)],
    [
      publishConfig?.provenance === true,
      'fill in',
      'package.json: "publishConfig": { "access": "public", "provenance": true }, so that the package is signed.',
    ],
    [isClean, 'run', 'git commit: there are changes that are not committed, and a release is a commit.'],
    [
      pending.length === 0,
      'run',
      `npm run release -- version: changes that have no version yet: ${pending.join(', ')}.`,
    ],
    [
      pending.length > 0 ||
        new RegExp(`^## ${version.replaceAll('.', '\\.')}(?![\\w.])`, 'm').test(changelog),
      'run',
      `npm run release -- version: CHANGELOG.md has no section "## ${version}".`,
    ],
    [
      typeof built === 'object' && built?.isClean === true && built.commit === commit,
      'run',
      `npm run build: dist/ ${wordsOfBuild(built, commit)}.`,
    ],
    [
      missingAddons.length === 0,
      'run',
      `npm run prebuildify on each platform: prebuilds/ has no addon for ${missingAddons.join(', ')}, so that anyone who installs Skein there has to compile.`,
    ],
    [
      staleAddons.length === 0,
      'run',
      `npm run prebuildify on each platform: prebuilds/ has addons of other sources for ${staleAddons.join(', ')}.`,
    ],
    [
      hasIdentity,
      'in CI',
      'An id-token, with which npm signs: permissions id-token: write on GitHub, SIGSTORE_ID_TOKEN on GitLab.',
    ],
  ];
  return checks.filter(([isWell]) => !isWell).map(([, kind, words]) => ({ kind, words }));
}

/** @param {{ commit: string, isClean: boolean } | 'nothing' | null} built @param {string} commit */
function wordsOfBuild(built, commit) {
  if (built === 'nothing') return 'was not built';
  if (built === null) return 'does not say which commit it was built from';
  const of = `was built from the commit ${built.commit.slice(0, 12)}`;
  if (built.commit !== commit) return `${of}, and the release is of ${commit.slice(0, 12)}`;
  return `${of} and from changes that were not committed`;
}

/** The repository as npm compares it with the run of CI that signs: an address of git over https. */
const ADDRESS = /^git\+https:\/\/[\w.-]+\/\S+\.git$/;

/** @param {unknown} repository */
function isRepository(repository) {
  if (typeof repository !== 'object' || repository === null) return false;
  const { type, url } = /** @type {{ type?: unknown, url?: unknown }} */ (repository);
  return type === 'git' && typeof url === 'string' && ADDRESS.test(url);
}

/** @param {unknown} repository */
function wordsOfRepository(repository) {
  const wanted = '"repository": { "type": "git", "url": "git+https://HOST/OWNER/NAME.git" }';
  const found = repository === undefined ? 'there is none' : `it is ${JSON.stringify(repository)}`;
  return `package.json: ${wanted}, the public address that CI builds from; ${found}. The signature names it.`;
}

const UNRELEASED = /^## Unreleased$/m;

/**
 * The changelog with what was unreleased under the version.
 * @param {string} changelog @param {string} version @param {string} date as 2026-01-31
 */
export function changelogOfRelease(changelog, version, date) {
  if (!UNRELEASED.test(changelog)) throw new Error('CHANGELOG.md has no section "## Unreleased".');
  return changelog.replace(UNRELEASED, `## Unreleased\n\n## ${version} (${date})`);
}
