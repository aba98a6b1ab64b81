import { readdirSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Resources that the process holds. Threads and files are known only where there is /proc (0 elsewhere). */
export interface Resources {
  rssBytes: number;
  heapBytes: number;
  threads: number;
  files: number;
  handles: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

export function heldResources(): Resources {
  collectGarbage();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    rssBytes: rss,
    heapBytes: heapUsed,
    threads: Number(/^Threads:\s+(\d+)/m.exec(readOr('/proc/self/status'))?.[1] ?? 0),
    files: filesOr0(),
    handles: process.getActiveResourcesInfo().length,
  };
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function filesOr0(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 0;
  }
}
