import { lstat, readFile } from 'node:fs/promises';

/** Ending of the name of a record. */
export const RECORD = '.json';
/** Far more than any record of this server has. */
const MAX_BYTES = 1 << 20;

/** Text of a record; null where it is a link, which may lead anywhere, no file, or too long. @throws Error of the system */
export async function readRecord(path: string): Promise<string | null> {
  const found = await lstat(path);
  return found.isFile() && found.size <= MAX_BYTES ? readFile(path, 'utf8') : null;
}
