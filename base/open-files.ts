import { readFileSync } from 'node:fs';

/**
 * Number of files, connections included, that this process may have open (ulimit -n); null where the system does not say.
 * Node.js raises the limit as far as it may when it starts.
 */
export function openFileLimit(): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const limit = Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]);
    return Number.isNaN(limit) ? null : limit; // unlimited
  } catch {
    return null;
  }
}
