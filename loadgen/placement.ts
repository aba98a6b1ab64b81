import { spawnSync } from 'node:child_process';
import { formatCpuList } from '../base/system-texts.js';
import type { Core, Topology } from '../base/topology.js';

/** Processors for the load generator's processes. */
export interface PlacementPlan {
  /** Processors of the coordinator; workers: those of each worker. null: the process stays where the system puts it. */
  coordinator: string | null;
  workers: (string | null)[];
  /** One sentence for people: the placement, or why there is none. */
  message: string;
}

export interface PlacementRequest {
  topology: Topology | null;
  /** Number of workers asked for; null: as many as the machine has room for. */
  workers: number | null;
  /** True where the options ask for placement. */
  isOn: boolean;
  /**
   * True where the server runs on this machine: it then gets half of the cores, so that the load generator does not
   * starve it.
   */
  serverIsHere: boolean;
  /** True where a process's processors can be set. */
  canPin: boolean;
  /**
   * True where the coordinator's process does nothing else; any other process stays where it is, and keeps its core.
   */
  ownsProcess: boolean;
  /** Most requests at once: more workers than this would have no work. */
  most: number;
}

/** Most workers, unless more are asked for by number. */
const MAX_WORKERS = 8;

/**
 * Plans the placement. The coordinator, which deals to all, gets the fastest core of its node; workers get a whole core
 * each: the rest of that node, from fast to slow, then the next best node. A process owns both threads of its cores.
 */
export function planPlacement(request: PlacementRequest): PlacementPlan {
  const { topology, workers, isOn, serverIsHere, canPin, ownsProcess, most } = request;
  if (topology === null) {
    const count = Math.min(most, workers ?? 1);
    return unplaced(count, 'Not placed: this system does not tell its processors.');
  }
  const order = orderOf(topology.cores);
  const usable = Math.min(order.length, topology.quota);
  const room = serverIsHere ? Math.floor(usable / 2) : usable;
  const count = Math.min(most, workers ?? Math.min(MAX_WORKERS, Math.max(1, room - 1)));
  const have = `${order.length} core${order.length === 1 ? '' : 's'}${usable < order.length ? ` and a quota of ${topology.quota}` : ''}`;
  if (!isOn) return unplaced(count, 'Not placed: it is turned off.');
  if (room < count + 1) {
    const need = serverIsHere ? 2 * (count + 1) : count + 1;
    const why = serverIsHere ? ', half of them for the server that is on it too' : '';
    return unplaced(
      count,
      `Not placed: the machine is too small, with ${have}; ${count} worker${count === 1 ? '' : 's'} and the coordinator need ${need}${why}.`,
    );
  }
  if (!canPin) return unplaced(count, 'Not placed: there is no taskset command (of util-linux).');
  const lists = order.slice(0, count + 1).map(({ cpus }) => formatCpuList(cpus));
  const [coordinator, ...own] = lists as [string, ...string[]];
  const coordinatorText = ownsProcess ? `the coordinator on processors ${coordinator}, ` : '';
  const rest = ownsProcess ? '' : '; the program that coordinates them is where it was';
  return {
    coordinator: ownsProcess ? coordinator : null,
    workers: own,
    message: `Placed: ${coordinatorText}workers on ${own.join(' | ')}, of ${have}${rest}.`,
  };
}

function unplaced(workers: number, message: string): PlacementPlan {
  return { coordinator: null, workers: Array<null>(workers).fill(null), message };
}

/** Cores ordered by node, the one with the fastest core first, and within a node by speed. */
function orderOf(cores: readonly Core[]): Core[] {
  const best = new Map<number, number>();
  for (const { node, performance } of cores) best.set(node, Math.max(best.get(node) ?? 0, performance));
  return cores.toSorted(
    (a, b) =>
      best.get(b.node)! - best.get(a.node)! ||
      a.node - b.node ||
      b.performance - a.performance ||
      a.cpus[0]! - b.cpus[0]!,
  );
}

/** True where taskset is installed; Node has no call for pinning. */
export function canPin(): boolean {
  return (
    process.platform === 'linux' && spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0
  );
}

/** Command that starts a process on these processors. */
export function launcherOf(cpus: string | null): string[] {
  return cpus === null ? [] : ['taskset', '-c', cpus];
}

/**
 * Moves all threads of this process to these processors. Returns a function that moves them back; null where it failed.
 */
export function pinThisProcess(cpus: string): (() => void) | null {
  const before = spawnSync('taskset', ['-c', '-p', String(process.pid)], { encoding: 'utf8' });
  const list = /list: (\S+)/.exec(before.stdout ?? '')?.[1];
  const set = (to: string) =>
    spawnSync('taskset', ['-a', '-c', '-p', to, String(process.pid)], { stdio: 'ignore' }).status === 0;
  if (list === undefined || !set(cpus)) return null;
  return () => void set(list);
}
