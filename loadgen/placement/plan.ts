import { type Core, formatCpuList, type Topology } from './topology.js';

/** Which processors the load generator's processes run on. */
export interface PlacementPlan {
  /** Processors of the coordinator, and of each worker; null: wherever they were, or the system puts them. */
  coordinator: string | null;
  workers: (string | null)[];
  /** One sentence for people: what was done, or why nothing was. */
  message: string;
}

export interface PlacementRequest {
  topology: Topology | null;
  /** Workers that were asked for; null: as the machine has room. */
  workers: number | null;
  /** The options' switch. */
  isOn: boolean;
  /** The server is on this machine: it gets half of the cores, so that what is measured is not starved by who measures. */
  serverIsHere: boolean;
  /** There is a command that sets a process's processors. */
  canPin: boolean;
  /** The coordinator's process does nothing else; any other stays where it is, and its core is left to it. */
  ownsProcess: boolean;
  /** Requests at once at most: more workers than this have nothing to do. */
  most: number;
}

/** Workers beyond this are asked for by number. */
const MOST_WORKERS = 8;

/**
 * The coordinator, which deals to all, gets the fastest core of the node that has it; workers get a whole core each: what
 * is left of that node, from fast to slow, then the next best node. A process owns both threads of its cores.
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
  const count = Math.min(most, workers ?? Math.min(MOST_WORKERS, Math.max(1, room - 1)));
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

/** The node with the fastest core first, within a node the fastest core first. */
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
