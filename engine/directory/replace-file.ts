import { renameSync, writeFileSync } from 'node:fs';

/** Puts a text in the place of a file by one step of the file system, so that nobody reads half of it. False: it cannot be written. */
export function replaceFile(path: string, text: string): boolean {
  const written = `${path}.${process.pid}-${Date.now()}.tmp`;
  try {
    writeFileSync(written, text);
    renameSync(written, path);
    return true;
  } catch {
    return false;
  }
}
