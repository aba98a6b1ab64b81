import { lstatSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A model in the cache of the Hugging Face hub. */
export interface StoredModel {
  /** ORG/NAME. */
  id: string;
  folder: string;
  /** Bytes on the disk, parts of unfinished downloads included. */
  bytes: number;
  /** When something of it was last stored. */
  changedMs: number;
  /** Branches and tags that were downloaded. */
  revisions: readonly string[];
}

const FOLDER = /^models--(.+)$/;

/** Models in the cache, by name; also those that other tools of the hub have downloaded. */
export function storedModels(cacheFolder: string): StoredModel[] {
  const names = namesIn(cacheFolder).filter((name) => FOLDER.test(name));
  return names
    .map((name) => storedModel(idOf(name), join(cacheFolder, name)))
    .filter((model) => model !== null)
    .sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** `--` represents the slash, which is the first one: names of organisations have no two hyphens in a row. */
function idOf(folderName: string): string {
  return FOLDER.exec(folderName)![1]!.replace('--', '/');
}

function storedModel(id: string, folder: string): StoredModel | null {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return null;
  let bytes = 0;
  let changedMs = 0;
  for (const name of namesIn(join(folder, 'blobs'))) {
    const status = statSync(join(folder, 'blobs', name), { throwIfNoEntry: false });
    if (status?.isFile() !== true) continue;
    bytes += status.size;
    changedMs = Math.max(changedMs, status.mtimeMs);
  }
  return { id, folder, bytes, changedMs, revisions: revisionsIn(join(folder, 'refs')) };
}

/** Names of branches may have slashes. */
function revisionsIn(folder: string): string[] {
  const found = namesIn(folder, true).filter((name) => statSync(join(folder, name)).isFile());
  return found.filter((name) => readFileSync(join(folder, name), 'utf8').trim() !== '').sort();
}

function namesIn(folder: string, recursive = false): string[] {
  try {
    return readdirSync(folder, { recursive, encoding: 'utf8' });
  } catch {
    return [];
  }
}

/** Deletes a model of the cache, all its revisions. */
export function removeStored({ folder }: StoredModel): void {
  rmSync(folder, { recursive: true, force: true });
}
