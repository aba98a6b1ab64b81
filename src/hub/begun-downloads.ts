import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Files of a repository that are in the cache, whole or in part. */
export interface BegunDownload {
  /** Bytes that are here of each file, by its hash. */
  bytes: ReadonlyMap<string, number>;
  /** Hashes of the files that are not whole. */
  parts: ReadonlySet<string>;
}

const FOLDER = /^models--(.+)$/;
const PART = '.incomplete';
/** Repositories, and files of each, that are looked at. */
const MAX_REPOSITORIES = 1000;
const MAX_FILES = 1000;

/** Repositories of a cache of which a file was begun and is not whole, by ORG/NAME. */
export async function begunDownloads(cacheFolder: string): Promise<Map<string, BegunDownload>> {
  const found = new Map<string, BegunDownload>();
  const folders = (await namesIn(cacheFolder)).filter((name) => FOLDER.test(name)).slice(0, MAX_REPOSITORIES);
  for (const folder of folders) {
    const blobs = join(cacheFolder, folder, 'blobs');
    const names = await namesIn(blobs);
    if (!names.some((name) => name.endsWith(PART))) continue;
    const bytes = new Map<string, number>();
    const parts = new Set<string>();
    for (const name of names.slice(0, MAX_FILES)) {
      const hash = name.endsWith(PART) ? name.slice(0, -PART.length) : name;
      if (hash !== name) parts.add(hash);
      const size = (await stat(join(blobs, name)).catch(() => null))?.size ?? 0;
      bytes.set(hash, Math.max(size, bytes.get(hash) ?? 0));
    }
    found.set(FOLDER.exec(folder)![1]!.replace('--', '/'), { bytes, parts });
  }
  return found;
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []);
}
