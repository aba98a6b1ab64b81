import { cpuQuota } from '../../base/cpu-quota.js';
import type { ReadText } from '../../base/read-text.js';

/** A physical core, as far as this process may use it. */
export interface Core {
  /** Logical processors of the core. */
  cpus: number[];
  node: number;
  /** Relative speed, greater is faster; comparable only within a machine. */
  performance: number;
}

export interface Topology {
  cores: Core[];
  /** Number of processors whose time the container may use. */
  quota: number;
}

const CPU = '/sys/devices/system/cpu';
const NODE = '/sys/devices/system/node';
/**
 * Files in which the kernel tells a core's speed: by the firmware, by its capacity (arm), by its greatest frequency.
 */
const PERFORMANCE = ['acpi_cppc/highest_perf', 'cpu_capacity', 'cpufreq/cpuinfo_max_freq'];

/** Cores that affinity and cpuset leave to this process; null where the system does not tell (other than Linux). */
export function readTopology(read: ReadText, parallelism: number): Topology | null {
  const allowed = allowedCpus(read);
  if (allowed === null || allowed.length === 0) return null;
  const nodes = nodesByCpu(read);
  const cores = new Map<string, Core>();
  for (const cpu of allowed) {
    const folder = `${CPU}/cpu${cpu}`;
    const siblings = read(`${folder}/topology/thread_siblings_list`)?.trim() ?? `${cpu}`;
    const known = cores.get(siblings);
    if (known !== undefined) known.cpus.push(cpu);
    else {
      const found = PERFORMANCE.map((file) => Number(read(`${folder}/${file}`) ?? Number.NaN));
      const performance = found.find((value) => value > 0) ?? 0;
      cores.set(siblings, { cpus: [cpu], node: nodes.get(cpu) ?? 0, performance });
    }
  }
  return { cores: [...cores.values()], quota: cpuQuota(read, parallelism) };
}

/** Processors in the scheduler's mask, or in the cgroup's set where that is narrower. */
function allowedCpus(read: ReadText): number[] | null {
  const mask = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read('/proc/self/status') ?? '')?.[1];
  if (mask === undefined) return null;
  const set = read('/sys/fs/cgroup/cpuset.cpus.effective')?.trim();
  const inSet = set === undefined || set === '' ? null : new Set(parseCpuList(set));
  return parseCpuList(mask).filter((cpu) => inSet === null || inSet.has(cpu));
}

function nodesByCpu(read: ReadText): Map<number, number> {
  const nodes = new Map<number, number>();
  for (const node of parseCpuList(read(`${NODE}/online`)?.trim() ?? '')) {
    for (const cpu of parseCpuList(read(`${NODE}/node${node}/cpulist`)?.trim() ?? '')) nodes.set(cpu, node);
  }
  return nodes;
}

/** Parses a list as the kernel writes it, such as `0-3,8`. */
export function parseCpuList(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, first, last] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? [];
    if (first === undefined) return [];
    const end = Number(last ?? first);
    return Array.from({ length: end - Number(first) + 1 }, (_, i) => Number(first) + i);
  });
}

export function formatCpuList(cpus: readonly number[]): string {
  return cpus.toSorted((a, b) => a - b).join(',');
}
