import { readFileSync } from 'node:fs';
import { freemem } from 'node:os';

/** Sources of the numbers; tests bring their own. */
export interface MemorySources {
  /** Content of a small text file, or null if it cannot be read. */
  readText(path: string): string | null;
  /** Bytes that the operating system reports as free for this process. */
  freeBytes(): number;
}

export interface AvailableMemory {
  bytes: number;
  /** The limit that decides, with its numbers, for messages. */
  from: string;
}

/** One version of control groups: its mount point and the names of its files. */
interface CgroupFiles {
  root: string;
  limit: string;
  usage: string;
  /** Key in memory.stat of file pages that the kernel can drop without a loss when memory is short. */
  reclaimable: string;
}

const CGROUP_V2: CgroupFiles = {
  root: '/sys/fs/cgroup',
  limit: 'memory.max',
  usage: 'memory.current',
  reclaimable: 'inactive_file',
};
const CGROUP_V1: CgroupFiles = {
  root: '/sys/fs/cgroup/memory',
  limit: 'memory.limit_in_bytes',
  usage: 'memory.usage_in_bytes',
  reclaimable: 'total_inactive_file',
};
/** cgroup v1 writes "no limit" as the greatest multiple of a page, close to 2^63. */
const NO_LIMIT_BYTES = 2 ** 60;

/**
 * Memory that this process may still take: the machine's free memory, or what is left under the limit of the control
 * group it runs in or of any group above it (a container's limit), whichever is least.
 *
 *   /sys/fs/cgroup             no limit
 *   └─ team.slice              memory.max 8 GiB, 3 GiB in use           5 GiB left
 *      └─ skein.service        memory.max 6 GiB, 0.5 GiB in use         5.5 GiB left
 *   MemAvailable of the machine                                         20 GiB      -> 5 GiB
 *
 * Pages of mapped files count as available where the kernel could drop them, so a caller that must keep a mapping
 * resident subtracts it. (process.availableMemory looks at the process's own group only.)
 */
export function availableMemory(sources: MemorySources = processSources): AvailableMemory {
  const machine = machineMemory(sources);
  let least = machine;
  for (const { files, path } of ownCgroups(sources)) {
    for (const group of groupAndAncestors(path)) {
      const left = leftInGroup(sources, files, group);
      if (left !== null && left.bytes < least.bytes) least = left;
    }
  }
  return least;
}

/** Sources that read the real files of this process. */
const processSources: MemorySources = {
  readText(path) {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return null;
    }
  },
  freeBytes: freemem,
};

function machineMemory(sources: MemorySources): AvailableMemory {
  const kibibytes = sources.readText('/proc/meminfo')?.match(/^MemAvailable:\s+(\d+) kB$/m)?.[1];
  if (kibibytes !== undefined)
    return { bytes: Number(kibibytes) * 1024, from: 'MemAvailable in /proc/meminfo' };
  return { bytes: sources.freeBytes(), from: 'free memory of the machine' };
}

/**
 * The groups named by /proc/self/cgroup. In v2 it is the line "0::/path", in v1 the line whose controllers include
 * memory. Inside a container the path may be that of the host, which is not mounted here; the root of the mount is then
 * the container's own group, and it is among the ancestors that are looked at.
 */
function ownCgroups(sources: MemorySources): { files: CgroupFiles; path: string }[] {
  const groups: { files: CgroupFiles; path: string }[] = [];
  for (const line of sources.readText('/proc/self/cgroup')?.split('\n') ?? []) {
    const match = line.match(/^\d+:([^:]*):(\/.*)$/);
    if (!match) continue;
    const [, controllers, path] = match as [string, string, string];
    if (controllers === '') groups.push({ files: CGROUP_V2, path });
    else if (controllers.split(',').includes('memory')) groups.push({ files: CGROUP_V1, path });
  }
  return groups;
}

/** Lists a group's path and those of its ancestors: "/a/b" -> "/a/b", "/a", "". */
function groupAndAncestors(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '');
  return Array.from({ length: names.length + 1 }, (_, up) =>
    names
      .slice(0, names.length - up)
      .map((name) => `/${name}`)
      .join(''),
  );
}

function leftInGroup(sources: MemorySources, files: CgroupFiles, group: string): AvailableMemory | null {
  const folder = `${files.root}${group}`;
  const limit = readBytes(sources, `${folder}/${files.limit}`);
  if (limit === null || limit >= NO_LIMIT_BYTES) return null;
  const usage = readBytes(sources, `${folder}/${files.usage}`) ?? 0;
  const stat = sources.readText(`${folder}/memory.stat`) ?? '';
  const reclaimable = Number(stat.match(new RegExp(`^${files.reclaimable} (\\d+)$`, 'm'))?.[1] ?? 0);
  const inUse = Math.max(0, usage - reclaimable);
  return {
    bytes: Math.max(0, limit - inUse),
    from: `${folder}/${files.limit} = ${limit} bytes, of which ${inUse} are in use`,
  };
}

/** Number of bytes in a file; null for a missing file and for "max". */
function readBytes(sources: MemorySources, path: string): number | null {
  const text = sources.readText(path)?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
