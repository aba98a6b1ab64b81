import { lstat, open, readFile, rename, rm } from 'node:fs/promises';

/** Ending of the name of a file that is not whole yet. */
export const PART = '.part';

/** Writes a file that appears by one rename when it is on the disk, so that no reader sees part of it. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const part = `${path}${PART}`;
  // A leftover of an earlier process, or a link placed there.
  await rm(part, { force: true });
  const file = await open(part, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(part, path);
}

/** Ending of the name of a record. */
export const RECORD = '.json';
/** Far more than any record of this server has. */
const MAX_BYTES = 1 << 20;

/** Text of a record; null where it is a link, which may lead anywhere, no file, or too long. @throws Error of the system */
export async function readRecord(path: string): Promise<string | null> {
  const found = await lstat(path);
  return found.isFile() && found.size <= MAX_BYTES ? readFile(path, 'utf8') : null;
}
