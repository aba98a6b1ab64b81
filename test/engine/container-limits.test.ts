import { describe, expect, it } from 'vitest';
import { availableMemory } from '../../engine/available-memory.js';
import { cpuQuota } from '../../engine/cpu-quota.js';

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

describe('availableMemory', () => {
  const meminfo = { '/proc/meminfo': 'MemTotal: 9 kB\nMemAvailable:    1000 kB\nBuffers: 1 kB\n' };

  it.each<[string, Record<string, string>, number]>([
    ['the system alone', meminfo, 1024_000],
    ['neither file', {}, 777],
    ['v2 without a limit', { ...meminfo, '/sys/fs/cgroup/memory.max': 'max\n' }, 1024_000],
    [
      'v2 with a limit, of which page cache counts as free',
      {
        ...meminfo,
        '/sys/fs/cgroup/memory.max': '5000\n',
        '/sys/fs/cgroup/memory.current': '3000\n',
        '/sys/fs/cgroup/memory.stat': 'anon 1000\ninactive_file 500\nactive_file 7\n',
      },
      2500,
    ],
    [
      'v1 with a limit',
      {
        ...meminfo,
        '/sys/fs/cgroup/memory/memory.limit_in_bytes': '6000\n',
        '/sys/fs/cgroup/memory/memory.usage_in_bytes': '7000\n',
      },
      0,
    ],
  ])('with %s', (_, contents, expected) => {
    expect(availableMemory(files(contents), 777)).toBe(expected);
  });
});
