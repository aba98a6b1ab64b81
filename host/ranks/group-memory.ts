import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAddon } from '../../engine/executors/native/load-addon.js';
import type { GroupHandle } from '../../engine/sharding/group.js';
import { newMemoryName, removeStaleMemory } from './memory-names.js';

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
