import { option, says } from '../../base/named-text.js';
import { type Core, readTopology, type Topology } from '../../base/topology.js';
import type { PinThreads } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { PlaceOfRank } from '../sharding/group.js';

/** Processors for the threads of one executor. */
export interface ThreadPlaces {
  /** Of each thread, the calling one first, in the order of their shares of the work. */
  cpus: number[][];
  /** True where memory can be far: weights then get pages of their own, each on the node of the thread that reads it. */
  hasFarMemory: boolean;
}

const ALONE: PlaceOfRank = { index: 0, count: 1 };

/**
 * Places the threads of an executor as the option says; null: they stay where the system puts them. `auto` places the ranks that share a
 * machine of several nodes: they know of one another. Any other process may share the machine with some that take the same processors.
 *
 * @throws ParameterError for `on` where the machine does not have as many processors, or does not tell
 */
export function choosePlaces(
  mode: PinThreads,
  threads: number,
  place: PlaceOfRank = ALONE,
  read: () => Topology | null = readTopology,
): ThreadPlaces | null {
  if (mode === 'off' || (mode === 'auto' && place.count === 1)) return null;
  const topology = read();
  if (mode === 'auto' && (topology?.nodes ?? 1) === 1) return null;
  const places = topology === null ? null : placeThreads(topology, threads, place);
  if (mode === 'auto' || places !== null) return places;
  const wanted = place.count === 1 ? `${threads}` : `${place.count} x ${threads}`;
  const problem =
    topology === null
      ? says`${option('pinThreads')} is on, but this system does not tell its processors; leave it out.`
      : says`${option('pinThreads')} is on, but this process may use ${topology.cores.length} cores, too few for ${wanted} threads; lower ${option('threads')} or leave it out.`;
  throw new ParameterError('pinThreads', problem);
}

/**
 * Processors for the threads of one executor of several; null: there are too few.
 *
 *   node 0: cores 0 1 2 3    node 1: cores 4 5 6 7
 *   2 executors x 3 threads    0 1 2 | 4 5 6     each on the node with the most free cores
 *   1 executor x 6 threads     0 1 2 3 4 5       no node suffices: node after node, so that neighbouring shares lie together
 *
 * A thread gets all processors of a core, of an efficiency core only where the others do not suffice. An executor that is alone may have as many threads as there are processors; then each gets one.
 * The calling thread gets all that its executor has on its node: it runs JavaScript too, and what it starts gets the same.
 */
export function placeThreads(
  { cores, nodes }: Topology,
  threads: number,
  { index, count }: PlaceOfRank,
): ThreadPlaces | null {
  const fits = count * threads <= cores.length;
  if (!fits && count > 1) return null;
  const fastFirst = cores.toSorted((a, b) => Number(b.isFast) - Number(a.isFast));
  const free = byNode(fits ? fastFirst : oneByOne(fastFirst));
  let own: Core[] | null = null;
  for (let other = 0; other <= index; other++) own = take(free, threads);
  if (own === null) return null;
  const [first] = own as [Core];
  const near = own.filter(({ node }) => node === first.node).flatMap(({ cpus }) => cpus);
  return {
    cpus: own.map(({ cpus }, thread) => (thread === 0 ? near : cpus)),
    hasFarMemory: nodes > 1,
  };
}

/** Each processor by itself: first those of all cores' first threads. */
function oneByOne(cores: readonly Core[]): Core[] {
  const most = Math.max(...cores.map(({ cpus }) => cpus.length));
  return Array.from({ length: most }, (_, i) =>
    cores.flatMap((core) => (i < core.cpus.length ? [{ ...core, cpus: [core.cpus[i]!] }] : [])),
  ).flat();
}

function byNode(cores: readonly Core[]): Map<number, Core[]> {
  const nodes = new Map<number, Core[]>();
  for (const core of cores.toSorted((a, b) => a.node - b.node)) {
    nodes.set(core.node, [...(nodes.get(core.node) ?? []), core]);
  }
  return nodes;
}

/** Takes `threads` free cores, of as few nodes as possible; ordered by node. */
function take(free: Map<number, Core[]>, threads: number): Core[] | null {
  const taken: Core[] = [];
  const mostFirst = [...free].sort(([a, x], [b, y]) => y.length - x.length || a - b);
  for (const [node, cores] of mostFirst) {
    const own = cores.slice(0, threads - taken.length);
    free.set(node, cores.slice(own.length));
    taken.push(...own);
  }
  return taken.length === threads ? taken.sort((a, b) => a.node - b.node) : null;
}
