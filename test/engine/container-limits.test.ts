import { describe, expect, it } from 'vitest';
import { cpuQuota } from '../../base/cpu-quota.js';

const files =
  (contents: Record<string, string>) =>
  (path: string): string | null =>
    contents[path] ?? null;
const V1 = '/sys/fs/cgroup/cpu/cpu.cfs';

describe('cpuQuota', () => {
  it.each<[string, Record<string, string>, number]>([
    ['no cgroup files', {}, 8],
    ['v2 without a quota', { '/sys/fs/cgroup/cpu.max': 'max 100000\n' }, 8],
    ['v2 with a quota', { '/sys/fs/cgroup/cpu.max': '200000 100000\n' }, 2],
    ['v2 with a part of a processor', { '/sys/fs/cgroup/cpu.max': '50000 100000\n' }, 1],
    ['v2 with one and a half', { '/sys/fs/cgroup/cpu.max': '150000 100000\n' }, 1],
    ['v2 with more than there are', { '/sys/fs/cgroup/cpu.max': '1600000 100000\n' }, 8],
    ['v1 without a quota', { [`${V1}_quota_us`]: '-1\n', [`${V1}_period_us`]: '100000\n' }, 8],
    ['v1 with a quota', { [`${V1}_quota_us`]: '400000\n', [`${V1}_period_us`]: '100000\n' }, 4],
    ['text that makes no sense', { '/sys/fs/cgroup/cpu.max': 'lots' }, 8],
  ])('with %s', (_, contents, expected) => {
    expect(cpuQuota(files(contents), 8)).toBe(expected);
  });
});
