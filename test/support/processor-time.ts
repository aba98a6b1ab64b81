import { readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

/** Milliseconds of one tick of /proc. */
const TICK_MS = 10;

/**
 * Reports the processor time that a file's imports and tests took, of this process with its threads and, on
 * Linux, of its children that have ended: unlike seconds, it hardly depends on what else the machine does.
 */
const beganMs = processorMs();
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads which fixtures the pattern names
afterAll(({}, { file }) => {
  Object.assign(file.meta, { processorMs: processorMs() - beganMs });
});

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + childrenMs();
}

/** cutime and cstime of proc_pid_stat(5): fields 16 and 17, counted from the third after the name. */
function childrenMs(): number {
  if (process.platform !== 'linux') return 0;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return TICK_MS * (Number(fields[13]) + Number(fields[14]));
}
