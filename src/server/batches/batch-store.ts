import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { nowSeconds } from '../files/file-store.js';
import { RECORD, readRecord, writeWhole } from '../files/record-file.js';
import type { StorageFolder } from '../files/storage-folder.js';
import { ApiError } from '../web/errors.js';
import { type Batch, hasEnded } from './batch-object.js';
import { readBatch } from './batch-record.js';

/** Most batches that are kept: those that have ended make room first, the oldest of them. */
const MAX_BATCHES = 1000;
/** Seconds that a batch is kept, from its creation on. */
const LIFE_S = 30 * 86_400;

/** Batches by id, each in a record of its own: batches/batch_5f1c.json. */
export class BatchStore {
  readonly #storage: StorageFolder;
  readonly #isShared: () => boolean;
  /** Batches in the order of their creation. */
  readonly #batches = new Map<string, Batch>();
  /** The latest write of each batch's record. */
  readonly #writes = new Map<string, Promise<void>>();

  /** @param isShared returns true where there are several API keys: then none has more than half of the batches */
  constructor(storage: StorageFolder, isShared: () => boolean) {
    this.#storage = storage;
    this.#isShared = isShared;
  }

  /** Reads the records of a folder that was given. @returns names of files that are no records of batches */
  async load(): Promise<string[]> {
    if (!this.#storage.isKept) return [];
    const { batches: folder } = await this.#storage.paths();
    const found: Batch[] = [];
    const unread: string[] = [];
    for (const name of await readdir(folder)) {
      if (!name.endsWith(RECORD)) continue;
      const text = await readRecord(join(folder, name));
      const batch = text === null ? null : readBatch(text, name.slice(0, -RECORD.length));
      if (batch !== null) found.push(batch);
      else unread.push(name);
    }
    for (const batch of found.sort((one, other) => one.createdAt - other.createdAt))
      this.#batches.set(batch.id, batch);
    return unread;
  }

  all(): Batch[] {
    return [...this.#batches.values()];
  }

  list(owner: string): Batch[] {
    this.#sweep();
    return this.all().filter((batch) => batch.owner === owner);
  }

  get(owner: string, id: string): Batch | null {
    const batch = this.#batches.get(id);
    return batch?.owner === owner ? batch : null;
  }

  /** The batch as it is now. */
  latest(batch: Batch): Batch {
    return this.#batches.get(batch.id) ?? batch;
  }

  /** Adds a batch; its record is written. @throws ApiError 429 where too many have not ended. */
  async add(batch: Batch): Promise<void> {
    this.#sweep();
    const live = this.all().filter((one) => !hasEnded(one));
    const own = live.filter(({ owner }) => owner === batch.owner).length;
    const most = this.#isShared() ? MAX_BATCHES / 2 : MAX_BATCHES;
    if (live.length >= MAX_BATCHES || own >= most) {
      throw new ApiError(429, `There are ${own} of your batches that have not ended; wait for one of them.`, {
        type: 'rate_limit_error',
        code: 'too_many_batches',
        headers: { 'retry-after': '30' },
      });
    }
    if (this.#batches.size >= MAX_BATCHES) this.#forget(this.all().find(hasEnded)!);
    await this.put(batch);
  }

  /** Changes a batch; resolves when its record is written, in the order of the changes. */
  put(batch: Batch): Promise<void> {
    const { id } = batch;
    this.#batches.set(id, batch);
    const write = async () => {
      const { batches: folder } = await this.#storage.paths();
      await writeWhole(join(folder, `${id}${RECORD}`), JSON.stringify(this.#batches.get(id) ?? batch));
    };
    const written = (this.#writes.get(id) ?? Promise.resolve()).catch(() => {}).then(write);
    this.#writes.set(id, written);
    const forget = () => {
      if (this.#writes.get(id) === written) this.#writes.delete(id);
    };
    written.then(forget, forget);
    return written;
  }

  /** Changes a batch in memory alone: what changes often. */
  note(batch: Batch): void {
    this.#batches.set(batch.id, batch);
  }

  #sweep(): void {
    const oldest = nowSeconds() - LIFE_S;
    for (const batch of this.all()) if (batch.createdAt <= oldest && hasEnded(batch)) this.#forget(batch);
  }

  #forget({ id }: Batch): void {
    this.#batches.delete(id);
    const remove = async () => {
      const { batches: folder } = await this.#storage.paths();
      await rm(join(folder, `${id}${RECORD}`), { force: true });
    };
    void (this.#writes.get(id) ?? Promise.resolve()).then(remove, remove).catch(() => {});
  }
}
