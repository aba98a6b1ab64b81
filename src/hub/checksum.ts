import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** Checksum of a file's contents: sha256 for large files, git's own name of the blob for small ones. */
export interface Checksum {
  algorithm: 'sha256' | 'git';
  /** The checksum in lower case hexadecimal. */
  value: string;
}

/** True where a file of `size` bytes has the checksum. */
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
