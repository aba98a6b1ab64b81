import type { VersionPolicy } from './model-config.js';

/** A version is a folder whose name is a whole number from 1, without zeros in front. */
export function isVersion(name: string): boolean {
  return /^[1-9]\d{0,17}$/.test(name);
}

/** Versions in their order: numbers of up to 18 digits. */
export function byNumber(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** The versions that a policy serves, of those that there are, lowest first. */
export function chooseVersions(policy: VersionPolicy, present: readonly string[]): string[] {
  const versions = [...present].sort(byNumber);
  if ('all' in policy) return versions;
  if ('specific' in policy) {
    const wanted = new Set(policy.specific.versions.map(String));
    return versions.filter((version) => wanted.has(version));
  }
  return versions.slice(-policy.latest.num_versions);
}
