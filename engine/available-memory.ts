import { freemem } from 'node:os';
import { type ReadText, readText } from './read-text.js';

/**
 * Bytes of memory that can still be taken: what the system has available, and under a container's limit no more than
 * what that leaves. Page cache counts as available.
 *
 *   /proc/meminfo  MemAvailable; elsewhere what the operating system calls free
 *   cgroup v2  /sys/fs/cgroup/memory.max            limit or "max", less memory.current without inactive_file
 *   cgroup v1  /sys/fs/cgroup/memory/memory.limit_in_bytes, less memory.usage_in_bytes without total_inactive_file
 */
export function availableMemory(read: ReadText = readText, free: number = freemem()): number {
  const match = /^MemAvailable:\s+(\d+) kB$/m.exec(read('/proc/meminfo') ?? '');
  const system = match ? Number(match[1]) * 1024 : free;
  const v2 = leftUnderLimit(
    read('/sys/fs/cgroup/memory.max'),
    read('/sys/fs/cgroup/memory.current'),
    read('/sys/fs/cgroup/memory.stat'),
    'inactive_file',
  );
  const v1 = leftUnderLimit(
    read('/sys/fs/cgroup/memory/memory.limit_in_bytes'),
    read('/sys/fs/cgroup/memory/memory.usage_in_bytes'),
    read('/sys/fs/cgroup/memory/memory.stat'),
    'total_inactive_file',
  );
  return Math.min(system, v2, v1);
}

function leftUnderLimit(
  limit: string | null,
  usage: string | null,
  stat: string | null,
  inactive: string,
): number {
  const limitBytes = Number((limit ?? 'max').trim());
  const usageBytes = Number((usage ?? '').trim());
  if (!Number.isFinite(limitBytes) || !Number.isFinite(usageBytes)) return Number.POSITIVE_INFINITY;
  const match = new RegExp(`^${inactive} (\\d+)$`, 'm').exec(stat ?? '');
  return Math.max(0, limitBytes - usageBytes + (match ? Number(match[1]) : 0));
}
