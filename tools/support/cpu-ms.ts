import { readFileSync } from 'node:fs';

/** Milliseconds of a tick of the kernel's clock, in which processor time is counted. */
const TICK_MS = 10;

/** Milliseconds of processor time that processes have taken since their start. Linux only. */
export function cpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return sum + TICK_MS * (Number(fields[11]) + Number(fields[12]));
  }, 0);
}
