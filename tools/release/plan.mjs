/**
 * What stands in the way of publishing, in sentences.
 * @param {{ manifest: { name: string, version: string, private?: boolean, repository?: unknown, publishConfig?: { provenance?: boolean } },
 *   changelog: string, isClean: boolean, hasBuilt: boolean, missingAddons: readonly string[], hasIdentity: boolean, pending: readonly string[] }} found
 * @returns {string[]}
 */
export function problemsOfRelease({
  manifest,
  changelog,
  isClean,
  hasBuilt,
  missingAddons,
  hasIdentity,
  pending,
}) {
  const { version, repository, publishConfig } = manifest;
  /** @type {[boolean, string][]} */
  const checks = [
    [isClean, 'There are changes that are not committed: a release is a commit.'],
    [
      pending.length === 0,
      `${pending.length} changes have no version yet (${pending.join(', ')}): npm run release -- version.`,
    ],
    [
      new RegExp(`^## ${version.replaceAll('.', '\\.')}\\b`, 'm').test(changelog),
      `CHANGELOG.md has no section "## ${version}": npm run release -- version.`,
    ],
    [hasBuilt, 'dist/ was not built: npm run build.'],
    [
      missingAddons.length === 0,
      `prebuilds/ has no addon for ${missingAddons.join(', ')}, so that whoever installs Skein there has to compile: npm run prebuildify on each.`,
    ],
    [publishConfig?.provenance === true, 'publishConfig.provenance of package.json is not true.'],
    [
      repository !== undefined,
      'package.json has no repository: the statement of provenance says which repository the package is from.',
    ],
    [
      hasIdentity,
      'This is no run of CI that may sign (an id-token: permissions id-token: write on GitHub, SIGSTORE_ID_TOKEN on GitLab).',
    ],
  ];
  return checks.filter(([isWell]) => !isWell).map(([, problem]) => problem);
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
