import { parseCpuList, type ReadText } from './system-texts.js';
import type { Core } from './topology.js';

const DEVICES = '/sys/devices';

/**
 * The cores that a model's threads are counted by; the rest are efficiency cores. All threads of an operation
 * wait for the slowest one, so that slow cores make everything slower. All cores where the system reports no
 * kinds, or this process may use only one kind.
 *
 *   hybrid x86   /sys/devices/cpu_core/cpus   0-15      performance cores, next to
 *                /sys/devices/cpu_atom/cpus   16-23     efficiency cores
 *   big.LITTLE   .../cpu/cpu4/cpu_capacity    1024      of each core; the fastest one of the machine has 1024
 */
export function fastCores(cores: readonly Core[], read: ReadText): Set<Core> {
  const fast = hybridCores(cores, read) ?? capableCores(cores, read);
  return new Set(fast.length === 0 ? cores : fast);
}

/** The performance cores of hybrid x86; null: it is none. */
function hybridCores(cores: readonly Core[], read: ReadText): Core[] | null {
  const [performance, efficiency] = ['cpu_core', 'cpu_atom'].map((name) =>
    read(`${DEVICES}/${name}/cpus`)?.trim(),
  );
  if (!performance || !efficiency) return null;
  const fast = new Set(parseCpuList(performance));
  return cores.filter(({ cpus }) => cpus.some((cpu) => fast.has(cpu)));
}

/**
 * The cores, fastest first, with which the most is done where all have an equal share and wait for the
 * slowest: their number is chosen so that number x capacity of the slowest is greatest.
 *
 *   4 x 1024, 4 x 430                4 x 1024 > 8 x 430: the four big ones
 *   1024, 3 x 871, 4 x 250           4 x 871: four
 *   1024, 3 x 900, 4 x 750           8 x 750: all
 */
function capableCores(cores: readonly Core[], read: ReadText): Core[] {
  const capacity = new Map(
    cores.map((core) => [core, Number(read(`${DEVICES}/system/cpu/cpu${core.cpus[0]}/cpu_capacity`) ?? 0)]),
  );
  const sorted = cores.toSorted((a, b) => capacity.get(b)! - capacity.get(a)!);
  if (!(capacity.get(sorted.at(-1)!)! > 0)) return [];
  let best = 0;
  for (const [i, core] of sorted.entries()) {
    if ((i + 1) * capacity.get(core)! >= best * (capacity.get(sorted[best - 1]!) ?? 0)) best = i + 1;
  }
  return sorted.slice(0, best);
}
