import { readdirSync, readFileSync } from 'node:fs';

export interface RunningProcess {
  pid: number;
  /** Process that has started it. */
  parent: number;
  args: readonly string[];
}

/** All processes of this machine, by Linux's /proc. Those that end meanwhile may be missing. */
export function runningProcesses(): RunningProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const parent = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))![1]);
      const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      return [{ pid: Number(name), parent, args }];
    } catch {
      // It has ended.
      return [];
    }
  });
}
