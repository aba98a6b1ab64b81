import { randomBytes } from 'node:crypto';
import { readdirSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../base/build-directory.js';

/**
 * Names of files of groups' memory, which tell who made them:
 *
 *   skein-ranks-4026531836-1234-0123456789abcdef
 *               |          |    random
 *               |          process
 *               its namespace, outside which the number means another process
 */
const NAME = /^skein-ranks-(\d+)-(\d+)-[0-9a-f]{16}$/;

export function newMemoryName(): string {
  return `skein-ranks-${namespaceOfProcesses()}-${process.pid}-${randomBytes(8).toString('hex')}`;
}

/**
 * Removes memory whose process was killed before all ranks had opened it: nobody else does, and it stays until the machine's next start.
 * Memory of processes that live, or that cannot be told, stays.
 */
export function removeStaleMemory(folder: string, lives: (pid: number) => boolean = isAlive): void {
  const namespace = namespaceOfProcesses();
  try {
    for (const name of readdirSync(folder)) {
      const [, of, pid] = NAME.exec(name) ?? [];
      if (of === namespace && !lives(Number(pid))) rmSync(join(folder, name), { force: true });
    }
  } catch {
    // Another user's, or a folder that cannot be listed: it is in nobody's way.
  }
}

/** Number of this process's namespace of processes; 0 on systems without them. */
function namespaceOfProcesses(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
  } catch {
    return '0';
  }
}
