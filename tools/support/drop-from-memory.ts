import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Has Linux forget its pages of a file, or of all files of a folder, which then lie on the disk alone; what has not been written yet is
 * written. Files that a process has mapped, and those of a file system in memory, stay.
 */
export function dropFromMemory(path: string): void {
  if (lstatSync(path).isFile()) {
    execFileSync('sync', [path]);
    execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
    return;
  }
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) dropFromMemory(join(entry.parentPath, entry.name));
}
