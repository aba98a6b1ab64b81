import { cpus } from 'node:os';
import { appleCores } from './apple-cores.js';
import { cpuQuota } from './cpu-quota.js';
import { fastCores } from './fast-cores.js';
import { counted } from './sentences.js';
import { parseCpuList, type ReadText, readText } from './system-texts.js';

/** A physical core, as far as this process may use it. */
export interface Core {
  /** Logical processors of the core, ascending: one, or with hyper-threads several. */
  cpus: number[];
  /** The node whose memory is near. */
  node: number;
  /** Relative speed, greater is faster; comparable only within a machine. */
  performance: number;
  /** False: an efficiency core, which a model's threads leave alone while there are others. */
  isFast: boolean;
}

export interface Topology {
  /** By their first processors, ascending. */
  cores: Core[];
  /** Number of processors whose time the container may use. */
  quota: number;
  /** Number of nodes of the machine that have processors, whether or not this process may use them. */
  nodes: number;
}

const CPU = '/sys/devices/system/cpu';
const NODE = '/sys/devices/system/node';
/** Files that list the processors of a core; the second one is the newer name. */
const SIBLINGS = ['topology/thread_siblings_list', 'topology/core_cpus_list'];
/**
 * Files in which the kernel gives a core's speed: by the firmware, by its capacity (arm), by its greatest
 * frequency.
 */
const PERFORMANCE = ['acpi_cppc/highest_perf', 'cpu_capacity', 'cpufreq/cpuinfo_max_freq'];

/**
 * Cores that affinity and cpuset leave to this process; null where the system does not report them (other
 * than Linux).
 *
 *   /proc/self/status                       Cpus_allowed_list: 0-3      of the process, not of the calling thread
 *   /sys/fs/cgroup/cpuset.cpus.effective    0-3
 *   /sys/devices/system/cpu/online          0-7
 *   .../cpu/cpu2/topology/                  thread_siblings_list: 2,6   physical_package_id: 0
 *   /sys/devices/system/node/node0/cpulist  0-3                         without nodes, a socket counts as one
 */
export function readTopology(read: ReadText = readText): Topology | null {
  const allowed = allowedCpus(read);
  if (allowed === null || allowed.length === 0) return null;
  const nodes = nodesByCpu(read);
  const cores = new Map<string, Core>();
  for (const cpu of allowed) {
    const folder = `${CPU}/cpu${cpu}`;
    const siblings = firstOf(read, folder, SIBLINGS)?.trim() ?? `${cpu}`;
    const known = cores.get(siblings);
    if (known !== undefined) known.cpus.push(cpu);
    else {
      const found = PERFORMANCE.map((file) => Number(read(`${folder}/${file}`) ?? Number.NaN));
      const performance = found.find((value) => value > 0) ?? 0;
      const node = nodes.get(cpu) ?? packageOf(read, cpu);
      cores.set(siblings, { cpus: [cpu], node, performance, isFast: true });
    }
  }
  const own = [...cores.values()];
  const fast = fastCores(own, read);
  for (const core of own) core.isFast = fast.has(core);
  const count = new Set([...nodes.values(), ...own.map(({ node }) => node)]).size;
  return { cores: own, quota: cpuQuota(read, allowed.length), nodes: count };
}

/**
 * Number of threads that compute by default: one a physical core, since the second thread of a core shares its arithmetic units; without
 * efficiency cores, since all threads wait for the slowest one; and no more than the container's quota.
 * @param apple performance cores of Apple silicon; null: this is none
 */
export function defaultThreads(read: ReadText = readText, apple: () => number | null = appleCores): number {
  const topology = readTopology(read);
  if (topology === null) return Math.min(apple() ?? Number.POSITIVE_INFINITY, cpuQuota(read));
  return Math.min(fastOf(topology), topology.quota);
}

/**
 * Why the threads that compute by default are fewer than the machine's processors, as a clause; null: they
 * are as many, this system does not report its cores, or these are not the threads of the default.
 *
 * @param all processors of the machine
 */
export function fewerThreads(
  threads: number,
  read: ReadText = readText,
  all: number = cpus().length,
): string | null {
  const topology = readTopology(read);
  if (topology === null) return null;
  const { cores, quota } = topology;
  const allowed = cores.reduce((sum, core) => sum + core.cpus.length, 0);
  const fast = fastOf(topology);
  if (threads !== Math.min(fast, quota)) return null;
  if (quota < fast) return `a CPU quota allows ${quota} of ${allowed} processors`;
  if (fast < cores.length) return `${fast} of ${cores.length} cores are performance cores`;
  if (allowed < all) return `this process may use ${allowed} of ${all} processors`;
  return cores.length < all ? `${all} processors are the threads of ${cores.length} cores` : null;
}

const fastOf = ({ cores }: Topology) => cores.filter(({ isFast }) => isFast).length;

/** Processors in the scheduler's mask, or in the cgroup's set where that is narrower, that are online; ascending. */
function allowedCpus(read: ReadText): number[] | null {
  const mask = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read('/proc/self/status') ?? '')?.[1];
  if (mask === undefined) return null;
  // The mask of a process without limits has room for processors that are offline, or not there at all.
  const limits = ['/sys/fs/cgroup/cpuset.cpus.effective', `${CPU}/online`]
    .map((file) => read(file)?.trim() ?? '')
    .filter((text) => text !== '')
    .map((text) => new Set(parseCpuList(text)));
  return parseCpuList(mask)
    .filter((cpu) => limits.every((set) => set.has(cpu)))
    .sort((a, b) => a - b);
}

function nodesByCpu(read: ReadText): Map<number, number> {
  const nodes = new Map<number, number>();
  for (const node of parseCpuList(read(`${NODE}/online`)?.trim() ?? '')) {
    for (const cpu of parseCpuList(read(`${NODE}/node${node}/cpulist`)?.trim() ?? '')) nodes.set(cpu, node);
  }
  return nodes;
}

/** The socket of a processor; 0 where it is not given, or given as -1. */
function packageOf(read: ReadText, cpu: number): number {
  const found = Number(read(`${CPU}/cpu${cpu}/topology/physical_package_id`) ?? 0);
  return Math.max(0, found) || 0;
}

function firstOf(read: ReadText, folder: string, files: readonly string[]): string | null {
  for (const file of files) {
    const text = read(`${folder}/${file}`);
    if (text !== null) return text;
  }
  return null;
}

/** The threads of an executor in words, and, where they are the default and fewer than the machine's processors, why. */
export function threadsWithReason(threads: number): string {
  const why = fewerThreads(threads);
  return why === null ? counted(threads, 'thread') : `${counted(threads, 'thread')} (${why})`;
}
