import { availableParallelism } from 'node:os';
import { type ReadText, readText } from './read-text.js';

/**
 * Number of processors that this process may keep busy: the smallest of what the scheduler's affinity (cpuset included)
 * and the container's CPU quota allow, at least 1.
 *
 *   cgroup v2  /sys/fs/cgroup/cpu.max                  "200000 100000" or "max 100000"   quota and period, microseconds
 *   cgroup v1  /sys/fs/cgroup/cpu/cpu.cfs_quota_us     "200000" or "-1"
 *              /sys/fs/cgroup/cpu/cpu.cfs_period_us    "100000"
 */
export function cpuQuota(read: ReadText = readText, parallelism: number = availableParallelism()): number {
  const quota = quotaV2(read('/sys/fs/cgroup/cpu.max')) ?? quotaV1(read);
  const limit = quota === null ? parallelism : Math.min(parallelism, Math.floor(quota));
  return Math.max(1, limit);
}

function quotaV2(text: string | null): number | null {
  const [quota, period] = (text ?? '').trim().split(/\s+/).map(Number);
  return ratio(quota, period);
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
