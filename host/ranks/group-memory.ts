import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../../base/build-directory.js';
import { loadAddon } from '../../engine/executors/native/load-addon.js';
import type { GroupHandle } from '../../engine/sharding/group.js';

/** Memory as a file system; elsewhere the group's memory is a file whose pages are seldom written. */
const SHARED_MEMORY = '/dev/shm';

/** Makes the memory of a group under a name of its own, and opens it to end the group's waits. @throws a sentence */
export function makeGroupMemory(size: number): { path: string; group: GroupHandle } {
  const folder = existsSync(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir();
  removeStaleMemory(folder);
  const path = join(folder, newMemoryName());
  const { createGroup, RankGroup } = loadAddon();
  createGroup(path, size);
  return { path, group: new RankGroup({ path, rank: 0, size, limitMs: 1 }) };
}

/**
 * Names of files of groups' memory, which say who made them:
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
 * Removes memory whose process was killed before all ranks had opened it: no other process does, and it stays
 * until the machine's next start. Memory stays if its process lives, or if that cannot be determined.
 */
export function removeStaleMemory(folder: string, lives: (pid: number) => boolean = isAlive): void {
  const namespace = namespaceOfProcesses();
  try {
    for (const name of readdirSync(folder)) {
      const [, of, pid] = NAME.exec(name) ?? [];
      if (of === namespace && !lives(Number(pid))) rmSync(join(folder, name), { force: true });
    }
  } catch {
    // It belongs to another user, or the folder cannot be listed: it does no harm.
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
