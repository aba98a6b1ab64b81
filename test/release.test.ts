import { describe, expect, it } from 'vitest';
import { changelogOfRelease, problemsOfRelease } from '../tools/release/plan.mjs';

type Built = Parameters<typeof problemsOfRelease>[0]['built'];

const READY = {
  manifest: {
    name: 'skein',
    version: '0.2.0',
    repository: { type: 'git', url: 'git+https://git.example/skein/skein.git' },
    publishConfig: { provenance: true },
  },
  changelog: '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-01-31)\n\n- new\n',
  isClean: true,
  built: { commit: 'abc1234def5678', isClean: true } as Built,
  commit: 'abc1234def5678',
  missingAddons: [] as string[],
  staleAddons: [] as string[],
  hasIdentity: true,
  pending: [] as string[],
};

describe('a release', () => {
  it('is made where nothing stands in the way', () => {
    expect(problemsOfRelease(READY)).toEqual([]);
  });

  const { manifest } = READY;
  const withRepository = (repository: unknown) => {
    return { manifest: { ...manifest, repository: repository as typeof manifest.repository } };
  };

  it.each<[Partial<typeof READY> | { pending: string[] }, string, RegExp]>([
    [{ isClean: false }, 'run', /not committed/],
    [{ pending: ['.changeset/a.md'] }, 'run', /release -- version.*: \.changeset\/a\.md\.$/],
    // The section comes with the version, by the same command.
    [{ pending: ['.changeset/a.md'], changelog: '' }, 'run', /release -- version/],
    [{ changelog: '## 0.20.0\n' }, 'run', /no section "## 0\.2\.0"/],
    [{ changelog: '## 0.2.0.1\n' }, 'run', /no section "## 0\.2\.0"/],
    [{ built: 'nothing' }, 'run', /^npm run build: dist\/ was not built\.$/],
    [{ built: null }, 'run', /^npm run build: dist\/ does not say which commit/],
    [
      { built: { commit: '0'.repeat(40), isClean: true } },
      'run',
      /^npm run build: dist\/ was built from the commit 000000000000, and the release is of abc1234def56\.$/,
    ],
    [
      { built: { commit: READY.commit, isClean: false } },
      'run',
      /^npm run build: .* abc1234def56 and from changes that were not committed\.$/,
    ],
    [{ staleAddons: ['linux-x64-glibc'] }, 'run', /prebuildify.* of other sources for linux-x64-glibc\.$/],
    [
      { missingAddons: ['linux-x64-musl', 'darwin-arm64'] },
      'run',
      /prebuildify.*linux-x64-musl, darwin-arm64/,
    ],
    [{ hasIdentity: false }, 'in CI', /id-token/],
    [{ manifest: { ...manifest, publishConfig: { provenance: false } } }, 'fill in', /"provenance": true/],
    [withRepository(undefined), 'fill in', /"repository": \{ .*there is none/],
    [withRepository('skein/skein'), 'fill in', /it is "skein\/skein"/],
    [withRepository({ type: 'git', url: 'git@git.example:skein.git' }), 'fill in', /it is \{"type"/],
  ])('%o is told as what it is', (wrong, kind, words) => {
    const problems = problemsOfRelease({ ...READY, ...wrong });
    expect(problems).toEqual([{ kind, words: expect.stringMatching(words) }]);
  });

  it('gives what was unreleased its version, and begins anew', () => {
    const before = '# Changelog\n\n## Unreleased\n\n- new\n';
    const after = changelogOfRelease(before, '0.2.0', '2026-01-31');
    expect(after).toBe('# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-01-31)\n\n- new\n');
    expect(problemsOfRelease({ ...READY, changelog: after })).toEqual([]);
    expect(() => changelogOfRelease('# Changelog\n', '0.2.0', '2026-01-31')).toThrow(
      'no section "## Unreleased"',
    );
  });
});
