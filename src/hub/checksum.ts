import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** What a file's contents must be: sha256 of large files, git's own name of a blob for small ones. */
export interface Checksum {
  algorithm: 'sha256' | 'git';
  /** The checksum in lower case hexadecimal. */
  value: string;
}

/** Whether a file of `size` bytes has it. */
export async function hasChecksum(
  file: string,
  size: number,
  { algorithm, value }: Checksum,
): Promise<boolean> {
  const hash = createHash(algorithm === 'git' ? 'sha1' : 'sha256');
  // git hashes the kind and the length in front of the contents.
  if (algorithm === 'git') hash.update(`blob ${size}\0`);
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex') === value;
}
