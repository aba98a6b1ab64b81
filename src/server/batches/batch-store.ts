import { TakenOverError } from '../../../base/store-errors.js';
import { nowSeconds } from '../files/file-store.js';
import type { RecordStore, StoredRecord } from '../files/record-store.js';
import { ApiError } from '../web/errors.js';
import { type Batch, hasEnded } from './batch-object.js';
import { readBatch } from './batch-record.js';

/** Most batches that are kept: those that have ended make room first, the oldest of them. */
const MAX_BATCHES = 1000;
/** Seconds that a batch is kept, from its creation on. */
const LIFE_S = 30 * 86_400;
/** Attempts to apply a change that conflicts with another server's before the client gets an error. */
const TRIES = 8;

/** A batch that this process runs. */
interface Held {
  batch: Batch;
  revision: number;
  /** The latest write of its record. */
  written: Promise<void>;
  /** True where its progress was noted and not written. */
  isNoted: boolean;
  on: HeldEvents;
}

/** Events that a holder receives about its batch. */
export interface HeldEvents {
  /** Another server or a client cancelled it. */
  cancelled(): void;
  /** Another server has it now. */
  takenOver(): void;
}

/** Batches by id, each in a record of its own. A batch is changed by the server that holds it; others can only cancel it. */
export class BatchStore {
  readonly #records: RecordStore;
  /** Id of this server among those that share the records; null: it is the only one. */
  readonly #server: string | null;
  readonly #isShared: () => boolean;
  readonly #read = new WeakMap<StoredRecord, Batch | null>();
  readonly #held = new Map<string, Held>();

  /** @param isShared returns true where there are several API keys: then none has more than half of the batches */
  constructor(records: RecordStore, server: string | null, isShared: () => boolean) {
    this.#records = records;
    this.#server = server;
    this.#isShared = isShared;
  }

  /** All batches in the order of their creation. @throws the store's errors */
  async all(): Promise<Batch[]> {
    return (await this.#list()).map(({ batch }) => batch);
  }

  async #list(): Promise<{ batch: Batch; revision: number }[]> {
    const found = (await this.#records.list()).flatMap((record) => {
      const batch = this.#batchOf(record);
      return batch === null ? [] : [{ batch, revision: record.revision }];
    });
    for (const one of found) one.batch = this.latest(one.batch);
    return found.sort((one, other) => one.batch.createdAt - other.batch.createdAt);
  }

  /** Keys of records that hold no batch. */
  async unread(): Promise<string[]> {
    return (await this.#records.list()).filter((one) => this.#batchOf(one) === null).map(({ key }) => key);
  }

  #batchOf(record: StoredRecord): Batch | null {
    const known = this.#read.get(record);
    if (known !== undefined) return known;
    const batch = readBatch(record.text, record.key);
    this.#read.set(record, batch);
    return batch;
  }

  async list(owner: string): Promise<Batch[]> {
    await this.#sweep();
    return (await this.all()).filter((batch) => batch.owner === owner);
  }

  async get(owner: string, id: string): Promise<Batch | null> {
    const held = this.#held.get(id)?.batch;
    // One that has ended is shown as such when all servers show it.
    const batch = held !== undefined && !hasEnded(held) ? held : (await this.#stored(id))?.batch;
    return batch?.owner === owner ? batch : null;
  }

  async #stored(id: string): Promise<{ batch: Batch; revision: number } | null> {
    const record = await this.#records.get(id);
    const batch = record === null ? null : this.#batchOf(record);
    return batch === null ? null : { batch, revision: record!.revision };
  }

  /** The batch as it is now, where this process runs it. */
  latest(batch: Batch): Batch {
    return this.#held.get(batch.id)?.batch ?? batch;
  }

  /** Adds a batch that this process runs; its record is written. @throws ApiError 429 where too many have not ended. */
  async add(batch: Batch, on: HeldEvents): Promise<void> {
    await this.#sweep();
    const all = await this.all();
    const live = all.filter((one) => !hasEnded(one));
    const own = live.filter(({ owner }) => owner === batch.owner).length;
    const most = this.#isShared() ? MAX_BATCHES / 2 : MAX_BATCHES;
    if (live.length >= MAX_BATCHES || own >= most) {
      throw new ApiError(429, `There are ${own} of your batches that have not ended; wait for one of them.`, {
        type: 'rate_limit_error',
        code: 'too_many_batches',
        headers: { 'retry-after': '30' },
      });
    }
    if (all.length >= MAX_BATCHES) await this.#records.remove(all.find(hasEnded)!.id);
    await this.hold(batch, 0, on);
  }

  /** Takes a batch, unless another server changed it meanwhile. @returns false where that is so */
  async hold(batch: Batch, revision: number, on: HeldEvents): Promise<boolean> {
    const own = this.#server === null ? batch : { ...batch, holder: this.#server };
    const written = await this.#records.put(batch.id, JSON.stringify(own), revision);
    if (written === null) return false;
    this.#held.set(batch.id, {
      batch: own,
      revision: written,
      written: Promise.resolve(),
      isNoted: false,
      on,
    });
    return true;
  }

  /** Batches that have not ended, and who has them; those of this process are left out. */
  async ofOthers(): Promise<{ batch: Batch; revision: number }[]> {
    return (await this.#list()).filter(({ batch }) => !hasEnded(batch) && !this.#held.has(batch.id));
  }

  /** This process does not run the batch any more. */
  letGo({ id }: Batch): void {
    this.#held.delete(id);
  }

  /** Changes a batch that this process has; resolves when its record is written, in the order of the changes. @throws TakenOverError */
  put(batch: Batch): Promise<void> {
    const held = this.#held.get(batch.id);
    if (held === undefined) return Promise.reject(takenOver(batch.id));
    held.batch = batch;
    const written = held.written.catch(() => {}).then(() => this.#write(held));
    written.catch(() => {});
    held.written = written;
    return written;
  }

  async #write(held: Held): Promise<void> {
    const { id } = held.batch;
    held.isNoted = false;
    for (;;) {
      const written = await this.#records.put(id, JSON.stringify(held.batch), held.revision);
      if (written !== null) {
        held.revision = written;
        return;
      }
      const now = await this.#stored(id);
      if (now === null || !this.#isOwn(now.batch)) throw takenOver(id);
      this.#meet(held, now);
    }
  }

  #isOwn({ holder }: Batch): boolean {
    return this.#server === null || holder === this.#server;
  }

  /** Takes over what another server has changed: it can only have cancelled the batch. */
  #meet(held: Held, { batch, revision }: { batch: Batch; revision: number }): void {
    held.revision = revision;
    const { status, times } = held.batch;
    if (batch.status !== 'cancelling' || status === 'cancelling' || hasEnded(held.batch)) return;
    held.batch = { ...held.batch, status: 'cancelling', times: { ...times, ...batch.times } };
    held.on.cancelled();
  }

  /** Changes a batch in memory alone: what changes often. */
  note(batch: Batch): void {
    const held = this.#held.get(batch.id);
    if (held === undefined) return;
    held.batch = batch;
    held.isNoted = true;
  }

  /** Writes the pending changes and reads those of other servers. @throws the store's errors */
  async exchange(): Promise<void> {
    const stored = new Map((await this.#records.list()).map((record) => [record.key, record]));
    for (const held of [...this.#held.values()]) {
      const { id } = held.batch;
      const record = stored.get(id);
      const batch = record === undefined ? null : this.#batchOf(record);
      if (record !== undefined && record.revision > held.revision && batch !== null) {
        if (!this.#isOwn(batch)) held.on.takenOver();
        else if (batch.status === 'cancelling' && held.batch.status !== 'cancelling')
          await this.put(held.batch).catch(unlessTakenOver);
      }
      if (held.isNoted && this.#held.get(id) === held) await this.put(held.batch).catch(unlessTakenOver);
    }
  }

  /**
   * Changes a batch, whichever server holds it.
   * @param change returns the changed batch, or throws the client's error @returns the batch as it is then
   */
  async change(owner: string, id: string, change: (batch: Batch) => Batch): Promise<Batch | null> {
    const held = this.#held.get(id);
    if (held !== undefined && held.batch.owner === owner) {
      await this.put(change(held.batch));
      return held.batch;
    }
    for (let tried = 1; ; tried++) {
      const found = await this.#stored(id);
      if (found?.batch.owner !== owner) return null;
      const changed = change(found.batch);
      if (changed === found.batch) return changed;
      if ((await this.#records.put(id, JSON.stringify(changed), found.revision)) !== null) return changed;
      if (tried === TRIES) {
        throw new ApiError(503, `The batch '${id}' changes all the time; ask again.`, {
          code: 'server_busy',
          headers: { 'retry-after': '1' },
        });
      }
    }
  }

  async #sweep(): Promise<void> {
    const oldest = nowSeconds() - LIFE_S;
    for (const batch of await this.all())
      if (batch.createdAt <= oldest && hasEnded(batch)) await this.#records.remove(batch.id);
  }
}

/** A batch held by another server does not prevent writing the rest: its task receives the error. */
function unlessTakenOver(error: unknown): void {
  if (!(error instanceof TakenOverError)) throw error;
}

function takenOver(id: string): TakenOverError {
  return new TakenOverError(`Another server has the batch ${id} now.`);
}
