import { availableParallelism } from 'node:os';
import { type ReadText, readText } from './read-text.js';

/**
 * Number of processors that this process may keep busy: the smallest of what the scheduler's affinity (cpuset included)
 * and the container's CPU quota allow, at least 1.
 *
 *   cgroup v2  /sys/fs/cgroup/cpu.max                  "200000 100000" or "max 100000"   quota and period, microseconds
 *              /sys/fs/cgroup/system.slice/cpu.max, and so on, down to the cgroup of /proc/self/cgroup, as of a unit of systemd
 *   cgroup v1  /sys/fs/cgroup/cpu/cpu.cfs_quota_us     "200000" or "-1"
 *              /sys/fs/cgroup/cpu/cpu.cfs_period_us    "100000"
 */
export function cpuQuota(read: ReadText = readText, parallelism: number = availableParallelism()): number {
  const quota = quotaV2(read) ?? quotaV1(read);
  const limit = quota === null ? parallelism : Math.min(parallelism, Math.floor(quota));
  return Math.max(1, limit);
}

/** The least of the quotas of the process's cgroup and of those around it. */
function quotaV2(read: ReadText): number | null {
  const own = /^0::\/(.*)$/m.exec(read('/proc/self/cgroup') ?? '')?.[1] ?? '';
  // Where a container shows paths of the host, they lead nowhere in it.
  const names = own.split('/').filter((name) => name !== '' && name !== '..');
  let least: number | null = null;
  for (let depth = 0; depth <= names.length; depth++) {
    const folder = ['/sys/fs/cgroup', ...names.slice(0, depth)].join('/');
    const [quota, period] = (read(`${folder}/cpu.max`) ?? '').trim().split(/\s+/).map(Number);
    const found = ratio(quota, period);
    if (found !== null) least = Math.min(found, least ?? found);
  }
  return least;
}

function quotaV1(read: ReadText): number | null {
  const quota = read('/sys/fs/cgroup/cpu/cpu.cfs_quota_us');
  const period = read('/sys/fs/cgroup/cpu/cpu.cfs_period_us');
  return quota === null || period === null ? null : ratio(Number(quota), Number(period));
}

/** Quota divided by period; null where there is no quota ("max", -1) or the text is malformed. */
function ratio(quota: number | undefined, period: number | undefined): number | null {
  return quota !== undefined && period !== undefined && quota > 0 && period > 0 ? quota / period : null;
}
