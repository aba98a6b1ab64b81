import { describe, expect, it } from 'vitest';
import { changelogOfRelease, problemsOfRelease } from '../tools/release/plan.mjs';

const READY = {
  manifest: { name: 'skein', version: '0.2.0', repository: 'somewhere', publishConfig: { provenance: true } },
  changelog: '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-01-31)\n\n- new\n',
  isClean: true,
  hasBuilt: true,
  missingAddons: [] as string[],
  hasIdentity: true,
  pending: [] as string[],
};

describe('a release', () => {
  it('is made where nothing stands in the way', () => {
    expect(problemsOfRelease(READY)).toEqual([]);
  });

  it.each<[Partial<typeof READY>, RegExp]>([
    [{ isClean: false }, /not committed/],
    [{ pending: ['.changeset/a.md'] }, /^1 changes have no version yet \(\.changeset\/a\.md\)/],
    [{ changelog: '## 0.20.0\n' }, /no section "## 0\.2\.0"/],
    [{ hasBuilt: false }, /npm run build/],
    [{ missingAddons: ['linux-x64-musl', 'darwin-arm64'] }, /prebuildify/],
    [{ hasIdentity: false }, /may sign/],
    [
      { manifest: { ...READY.manifest, publishConfig: { provenance: false } } },
      /provenance of package\.json/,
    ],
    [{ manifest: { ...READY.manifest, repository: undefined as never } }, /no repository/],
  ])('%o is told as what it is', (wrong, words) => {
    const problems = problemsOfRelease({ ...READY, ...wrong });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(words);
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
