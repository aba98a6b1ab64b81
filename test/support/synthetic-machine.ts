import type { ReadText } from '../../base/system-texts.js';

export interface SyntheticCore {
  cpus: number[];
  node: number;
  performance?: number;
}

/**
 * Reads the files in which a made-up machine describes its processors, as Linux does.
 *
 * @param more files that replace or add to them; null: there is no such file
 */
export function syntheticMachine(
  cores: readonly SyntheticCore[],
  more: Record<string, string | null> = {},
): ReadText {
  const cpus = cores.flatMap((core) => core.cpus).sort((a, b) => a - b);
  const all: Record<string, string | null> = {
    '/proc/self/status': `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${cpus.join(',')}\n`,
    '/sys/devices/system/cpu/online': `${cpus.join(',')}\n`,
  };
  const nodes = new Map<number, number[]>();
  for (const { cpus: own, node, performance } of cores) {
    nodes.set(node, [...(nodes.get(node) ?? []), ...own]);
    for (const cpu of own) {
      const folder = `/sys/devices/system/cpu/cpu${cpu}`;
      all[`${folder}/topology/thread_siblings_list`] = `${own.join(',')}\n`;
      all[`${folder}/topology/physical_package_id`] = `${node}\n`;
      if (performance !== undefined) all[`${folder}/cpufreq/cpuinfo_max_freq`] = `${performance}\n`;
    }
  }
  all['/sys/devices/system/node/online'] = `${[...nodes.keys()].join(',')}\n`;
  for (const [node, list] of nodes)
    all[`/sys/devices/system/node/node${node}/cpulist`] = `${list.join(',')}\n`;
  const merged = { ...all, ...more };
  return (path) => merged[path] ?? null;
}

/** Cores as Linux numbers them: first the first threads of all cores, socket after socket, then the second ones. */
export function sockets(count: number, coresOfSocket: number, threadsOfCore: number): SyntheticCore[] {
  const all = count * coresOfSocket;
  return Array.from({ length: all }, (_, core) => ({
    cpus: Array.from({ length: threadsOfCore }, (_, thread) => core + thread * all),
    node: Math.floor(core / coresOfSocket),
  }));
}
