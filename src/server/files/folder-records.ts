import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MemoryRecords } from './memory-records.js';
import { RECORD, readRecord, writeWhole } from './record-file.js';
import type { RecordStore, StoredRecord } from './record-store.js';

/** Records in files of a folder that this process has for itself, each one in a file of its own: file-5f1c.json. */
export class FolderRecords implements RecordStore {
  readonly #folder: () => Promise<string>;
  readonly #memory = new MemoryRecords();
  /** The latest write of each record. */
  readonly #writes = new Map<string, Promise<void>>();
  #loading: Promise<void> | null = null;

  /** @param folder returns the folder, made where it is not there */
  constructor(folder: () => Promise<string>) {
    this.#folder = folder;
  }

  #load(): Promise<void> {
    this.#loading ??= this.#read().catch((error: unknown) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  async #read(): Promise<void> {
    const folder = await this.#folder();
    for (const name of await readdir(folder)) {
      if (!name.endsWith(RECORD)) continue;
      // A link, or what is too long, is a record of which nothing can be read.
      const text = (await readRecord(join(folder, name))) ?? '';
      this.#memory.set(name.slice(0, -RECORD.length), text);
    }
  }

  async get(key: string): Promise<StoredRecord | null> {
    await this.#load();
    return this.#memory.get(key);
  }

  async put(key: string, text: string, revision: number): Promise<number | null> {
    await this.#load();
    const written = await this.#memory.put(key, text, revision);
    if (written === null) return null;
    try {
      await this.#change(key, async (path) => writeWhole(path, text));
    } catch (error) {
      if (revision === 0) await this.#memory.remove(key);
      throw error;
    }
    return written;
  }

  async remove(key: string): Promise<boolean> {
    await this.#load();
    if (!(await this.#memory.remove(key))) return false;
    await this.#change(key, (path) => rm(path, { force: true })).catch(() => {});
    return true;
  }

  async list(words = ''): Promise<StoredRecord[]> {
    await this.#load();
    return this.#memory.list(words);
  }

  /** Changes the file of a record, after all earlier changes. */
  #change(key: string, change: (path: string) => Promise<void>): Promise<void> {
    const changed = (this.#writes.get(key) ?? Promise.resolve())
      .catch(() => {})
      .then(async () => change(join(await this.#folder(), `${key}${RECORD}`)));
    this.#writes.set(key, changed);
    const forget = () => {
      if (this.#writes.get(key) === changed) this.#writes.delete(key);
    };
    changed.then(forget, forget);
    return changed;
  }
}
