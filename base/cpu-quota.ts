import { availableParallelism } from 'node:os';
import { type ReadText, readText } from './system-texts.js';

/**
 * Number of processors that this process may keep busy: the smallest of what the scheduler's affinity (cpuset included)
 * and the container's CPU quota allow, at least 1.
 *
 *   cgroup v2  /sys/fs/cgroup/cpu.max                  "200000 100000" or "max 100000"   quota and period, microseconds
 *              /sys/fs/cgroup/system.slice/cpu.max, and so on, down to the cgroup of /proc/self/cgroup, as of a unit of systemd
 *   cgroup v1  /sys/fs/cgroup/cpu/cpu.cfs_quota_us     "200000" or "-1", and so on, down to that of the controller cpu
 *              /sys/fs/cgroup/cpu/cpu.cfs_period_us    "100000"
 */
export function cpuQuota(read: ReadText = readText, parallelism: number = availableParallelism()): number {
  const quota = quotaV2(read) ?? quotaV1(read);
  const limit = quota === null ? parallelism : Math.min(parallelism, Math.floor(quota));
  return Math.max(1, limit);
}

function quotaV2(read: ReadText): number | null {
  return leastQuota('/sys/fs/cgroup', cgroupOf(read, /^0::\/(.*)$/m), (folder) => {
    const [quota, period] = (read(`${folder}/cpu.max`) ?? '').trim().split(/\s+/).map(Number);
    return ratio(quota, period);
  });
}

function quotaV1(read: ReadText): number | null {
  const own = cgroupOf(read, /^\d+:(?:[^:\n]*,)?cpu(?:,[^:\n]*)?:\/(.*)$/m);
  return leastQuota('/sys/fs/cgroup/cpu', own, (folder) => {
    const quota = read(`${folder}/cpu.cfs_quota_us`);
    const period = read(`${folder}/cpu.cfs_period_us`);
    return quota === null || period === null ? null : ratio(Number(quota), Number(period));
  });
}

/** Path of the process's cgroup below the root of its hierarchy. */
function cgroupOf(read: ReadText, line: RegExp): string {
  return line.exec(read('/proc/self/cgroup') ?? '')?.[1] ?? '';
}

/** The least of the quotas of a cgroup and of those around it. */
function leastQuota(root: string, path: string, quotaOf: (folder: string) => number | null): number | null {
  // Where a container shows paths of the host, they lead nowhere in it.
  const names = path.split('/').filter((name) => name !== '' && name !== '..');
  let least: number | null = null;
  for (let depth = 0; depth <= names.length; depth++) {
    const found = quotaOf([root, ...names.slice(0, depth)].join('/'));
    if (found !== null) least = Math.min(found, least ?? found);
  }
  return least;
}

/** Quota divided by period; null where there is no quota ("max", -1) or the text is malformed. */
function ratio(quota: number | undefined, period: number | undefined): number | null {
  return quota !== undefined && period !== undefined && quota > 0 && period > 0 ? quota / period : null;
}
