import { describe, expect, it } from 'vitest';
import { availableMemory } from '../../kvcache/available-memory.js';

const GIB = 2 ** 30;
const MEMINFO = 'MemTotal:       33554432 kB\nMemFree:         1000000 kB\nMemAvailable:   20971520 kB\n';
const V1_UNLIMITED = '9223372036854771712\n';

/** A machine with 20 GiB available and these files besides. */
function machine(files: Record<string, string>) {
  const all: Record<string, string> = { '/proc/meminfo': MEMINFO, ...files };
  return { readText: (path: string) => all[path] ?? null, freeBytes: () => 7 * GIB };
}

describe('availableMemory', () => {
  it('asks the operating system where there is no /proc', () => {
    const sources = { readText: () => null, freeBytes: () => 7 * GIB };
    expect(availableMemory(sources)).toEqual({ bytes: 7 * GIB, from: 'free memory of the machine' });
  });

  it('takes MemAvailable, not MemFree, where no group has a limit', () => {
    const sources = machine({
      '/proc/self/cgroup': '0::/user.slice\n',
      '/sys/fs/cgroup/user.slice/memory.max': 'max\n',
    });
    expect(availableMemory(sources)).toEqual({ bytes: 20 * GIB, from: 'MemAvailable in /proc/meminfo' });
  });

  it('cgroup v2: what is left under the limit, file pages that can be dropped not counted as used', () => {
    const sources = machine({
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/memory.max': `${4 * GIB}\n`,
      '/sys/fs/cgroup/memory.current': `${2 * GIB}\n`,
      '/sys/fs/cgroup/memory.stat': `anon ${GIB}\nactive_file ${GIB / 2}\ninactive_file ${GIB / 2}\n`,
    });
    expect(availableMemory(sources)).toEqual({
      bytes: 2.5 * GIB,
      from: `/sys/fs/cgroup/memory.max = ${4 * GIB} bytes, of which ${1.5 * GIB} are in use`,
    });
  });

  it('cgroup v2: a group above may have the tighter limit', () => {
    const sources = machine({
      '/proc/self/cgroup': '0::/team.slice/skein.service\n',
      '/sys/fs/cgroup/team.slice/memory.max': `${8 * GIB}\n`,
      '/sys/fs/cgroup/team.slice/memory.current': `${3 * GIB}\n`,
      '/sys/fs/cgroup/team.slice/skein.service/memory.max': `${6 * GIB}\n`,
      '/sys/fs/cgroup/team.slice/skein.service/memory.current': `${GIB / 2}\n`,
    });
    const { bytes, from } = availableMemory(sources);
    expect(bytes).toBe(5 * GIB);
    expect(from).toContain('/sys/fs/cgroup/team.slice/memory.max');
  });

  it('cgroup v1: the group of the memory controller, with its own file names', () => {
    const folder = '/sys/fs/cgroup/memory/docker/abc';
    const sources = machine({
      '/proc/self/cgroup':
        '5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n',
      [`${folder}/memory.limit_in_bytes`]: `${2 * GIB}\n`,
      [`${folder}/memory.usage_in_bytes`]: `${GIB}\n`,
      [`${folder}/memory.stat`]: `inactive_file 1\ntotal_inactive_file ${GIB / 4}\n`,
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': V1_UNLIMITED,
    });
    expect(availableMemory(sources).bytes).toBe(1.25 * GIB);
  });

  it('cgroup v1 in a container: the path is the host’s, the mounted root is the own group', () => {
    const sources = machine({
      '/proc/self/cgroup': '4:memory:/docker/abc\n',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': `${3 * GIB}\n`,
      '/sys/fs/cgroup/memory/memory.usage_in_bytes': `${GIB}\n`,
    });
    expect(availableMemory(sources).bytes).toBe(2 * GIB);
  });

  it('a limit above what the machine has free does not make more of it', () => {
    const sources = machine({
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/memory.max': `${30 * GIB}\n`,
      '/sys/fs/cgroup/memory.current': `${GIB}\n`,
    });
    expect(availableMemory(sources).bytes).toBe(20 * GIB);
  });

  it('is nothing, never negative, where the group is over its limit', () => {
    const sources = machine({
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/memory.max': `${GIB}\n`,
      '/sys/fs/cgroup/memory.current': `${2 * GIB}\n`,
    });
    expect(availableMemory(sources).bytes).toBe(0);
  });

  it('finds a positive number on this machine', () => {
    expect(availableMemory().bytes).toBeGreaterThan(0);
  });
});
