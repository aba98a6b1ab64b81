import { createHash, randomBytes } from 'node:crypto';
import type { JetStreamManager } from '@nats-io/jetstream';
import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { StoreError } from '../../base/store-errors.js';
import { JetStore, type JetStoreOptions, STORE_TIMEOUT_MS, STORE_TRIES } from './jet-store.js';
import type { NatsModules } from './work-stream.js';

/** A record as it was read. */
export interface NatsRecord {
  key: string;
  text: string;
  /** Number that grows with each change of any record. */
  revision: number;
  /** When it was written, in milliseconds since 1970 by the NATS server's clock. */
  writtenMs: number;
}

/** Keys of records: words with dots between them. The first is none of this class's own. */
const KEY = /^(?!parts\.)[\w-]+(\.[\w-]+)*$/;
/** Parts of records that are too long for one message. */
const PARTS = 'parts';
const PARTED = /^#parts ([0-9a-f]{24}) (\d{1,6}) ([0-9a-f]{64})$/;
/** Most bytes of a record. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024;
/** Parts that are on their way at once. */
const PARTS_AT_ONCE = 4;
/** Times that a record is read which is to be taken away, and which others change meanwhile. */
const REMOVE_TRIES = 16;
/** Milliseconds that all records of a bucket may take to come. */
const LIST_TIMEOUT_MS = 4 * STORE_TIMEOUT_MS;
/** Milliseconds without a record after which a listing looks whether one is still to come. */
const LIST_LOOK_MS = 250;
/**
 * Milliseconds after which all records are read again although nothing has changed: the server that returned
 * them may have had old ones.
 */
const LIST_LIFE_MS = 10_000;

/** What a listing was made of: where the stream is as it was, so is the list. */
interface Listed {
  state: string;
  atMs: number;
  records: NatsRecord[];
}

/**
 * Texts by key in a bucket of JetStream's key-value store, which any number of processes share. A change
 * names the revision that it replaces, so that of two processes that change a record at once one learns of
 * the other.
 *
 *   KEY              the text, or where it is longer than a message: how many parts it has
 *   parts.NONCE.I    a part; of a text that was replaced, its parts are taken away
 */
export class NatsRecords {
  readonly #store: JetStore;
  readonly #bucket: string;
  #kv: Promise<KV> | null = null;
  readonly #listed = new Map<string, Listed>();

  /** @param bucket letters, digits, - and _ */
  constructor(nc: NatsConnection, modules: NatsModules, bucket: string, options: JetStoreOptions) {
    this.#bucket = bucket;
    this.#store = new JetStore(nc, modules, `KV_${bucket}`, options, {
      subjects: [`$KV.${bucket}.>`],
      max_msgs_per_subject: 1,
      retention: 'limits',
      allow_rollup_hdrs: true,
      // Only the leader knows of a change as soon as it is made.
      allow_direct: false,
    });
  }

  /** Makes the bucket where it is not there. @throws StoreError */
  open(): Promise<void> {
    return this.#store.ensure();
  }

  #opened(): Promise<KV> {
    this.#kv ??= new this.#store.modules.kv.Kvm(this.#store.client).open(this.#bucket, {
      allow_direct: false,
    });
    return this.#kv;
  }

  /** null: there is none. @throws StoreError */
  async get(key: string): Promise<NatsRecord | null> {
    if (!KEY.test(key)) return null;
    for (;;) {
      const entry = await this.#entry(key);
      if (entry === null) return null;
      const text = await this.#textOf(entry.text);
      if (text !== null) return { ...entry, key, text };
      // Its parts are gone: it was replaced meanwhile, or is damaged.
      const now = await this.#entry(key);
      if (now?.revision === entry.revision) throw damaged(this.#bucket, key);
    }
  }

  async #entry(key: string): Promise<Omit<NatsRecord, 'key'> | null> {
    const kv = await this.#opened();
    const entry = await this.#store.find(async () => {
      const found = await kv.get(key);
      return found?.operation === 'PUT' ? found : null;
    });
    return entry && { text: entry.string(), revision: entry.revision, writtenMs: entry.created.getTime() };
  }

  /**
   * Writes a record in place of the one of this revision; 0: there is none.
   * @returns its revision; null: another process has changed it before @throws StoreError
   */
  async put(key: string, text: string, revision: number): Promise<number | null> {
    if (!KEY.test(key)) throw new StoreError('foreign', `${JSON.stringify(key)} is no key of a record.`);
    const before = revision === 0 ? null : await this.#entry(key);
    const value = await this.#written(text);
    const written = await this.#put(key, value, revision).catch(async (error: unknown) => {
      await this.#dropParts(value);
      throw error;
    });
    await this.#dropParts(written === null ? value : before?.revision === revision ? before.text : '');
    return written;
  }

  async #put(key: string, value: string, revision: number): Promise<number | null> {
    const kv = await this.#opened();
    let expected = revision;
    for (let tried = 1; ; tried++) {
      try {
        return await this.#store.with(() => kv.put(key, value, { previousSeq: expected }));
      } catch (error) {
        if (error instanceof StoreError && (error.kind !== 'away' || tried === STORE_TRIES)) throw error;
        if (error instanceof StoreError) continue;
        if (!this.#store.isBehind(error)) throw error;
        const now = await this.#store.ask(() => kv.get(key));
        // An earlier try of the same write has come, whose answer was lost.
        if (tried > 1 && now?.operation === 'PUT' && now.revision > expected && now.string() === value)
          return now.revision;
        const isFree = revision === 0 && now !== null && now.operation !== 'PUT' && now.revision !== expected;
        if (!isFree) return null;
        // What was removed has left a mark.
        expected = now.revision;
      }
    }
  }

  /** Writes an empty record, whatever was there. @throws StoreError */
  async sign(key: string): Promise<void> {
    const kv = await this.#opened();
    await this.#store.with(() => kv.put(key, ''));
  }

  /** Takes a record away, whatever its revision. @returns false where there is none @throws StoreError */
  async remove(key: string): Promise<boolean> {
    if (!KEY.test(key)) return false;
    for (let tried = 1; tried <= REMOVE_TRIES; tried++) {
      const before = await this.#entry(key);
      if (before === null) return false;
      // Otherwise another process has changed it meanwhile, or removed it.
      if (!(await this.#store.erase(before.revision))) continue;
      await this.#dropParts(before.text);
      return true;
    }
    throw this.#store.away(`the record ${key} changes again and again`);
  }

  /** All records whose keys begin with words; they are short. @throws StoreError */
  async list(words = ''): Promise<NatsRecord[]> {
    const { stream } = this.#store;
    const { state } = await this.#store.ask((manager) => manager.streams.info(stream));
    const { first_seq, last_seq, messages } = state;
    const now = `${first_seq} ${last_seq} ${messages} ${state.num_deleted ?? 0}`;
    const before = this.#listed.get(words);
    const atMs = performance.now();
    if (before?.state === now && atMs - before.atMs < LIST_LIFE_MS) return before.records;
    const known = new Map(before?.records.map((record) => [record.key, record]));
    const records: NatsRecord[] = [];
    for (const entry of messages === 0 ? [] : await this.#entries(words === '' ? '>' : `${words}.>`)) {
      const { key, revision } = entry;
      if (entry.operation !== 'PUT' || !KEY.test(key)) continue;
      const same = known.get(key);
      if (same?.revision === revision) records.push(same);
      else {
        const text = await this.#textOf(entry.string());
        if (text !== null) records.push({ key, text, revision, writtenMs: entry.created.getTime() });
      }
    }
    this.#listed.set(words, { state: now, atMs, records });
    return records;
  }

  /** All entries, including those that the answering server did not know yet when it was asked. */
  async #entries(filter: string): Promise<KvEntry[]> {
    const keys = await this.#keys(filter);
    const entries = await this.#history(filter);
    const kv = await this.#opened();
    for (const key of keys) {
      const missing = entries.has(key) || !KEY.test(key) ? null : await this.#store.ask(() => kv.get(key));
      if (missing !== null) entries.set(key, missing);
    }
    return [...entries.values()];
  }

  /** The keys of all entries that there are now. */
  async #keys(filter: string): Promise<string[]> {
    const prefix = `$KV.${this.#bucket}.`;
    const ask = (manager: JetStreamManager) =>
      manager.streams.info(this.#store.stream, { subjects_filter: `${prefix}${filter}` });
    const { state } = await this.#store.ask(ask);
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
  }

  /** The last entry of each key that the server reported. */
  async #history(filter: string): Promise<Map<string, KvEntry>> {
    const kv = await this.#opened();
    const entries = await this.#store.ask(() => kv.history({ key: filter }));
    const late = setTimeout(() => entries.stop(new Error('its records take too long')), LIST_TIMEOUT_MS);
    const found = new Map<string, KvEntry>();
    let numTold = 0;
    let numBefore = 0;
    // A history ends with the entry that was the last one when it began, which never comes if it is taken away first.
    const stopAtAll = async () => {
      const keys = await this.#keys(filter);
      if (keys.every((key) => found.has(key))) entries.stop();
    };
    const look = setInterval(() => {
      // Where the server cannot be asked, the next look asks it.
      if (numTold === numBefore) stopAtAll().catch(() => {});
      numBefore = numTold;
    }, LIST_LOOK_MS);
    try {
      for await (const entry of entries) {
        found.set(entry.key, entry);
        numTold++;
      }
      return found;
    } catch (error) {
      throw this.#store.errorOf(error);
    } finally {
      clearTimeout(late);
      clearInterval(look);
    }
  }

  /** What stands in place of a text; its parts are stored then. */
  async #written(text: string): Promise<string> {
    const bytes = Buffer.from(text);
    if (bytes.length > MAX_RECORD_BYTES) {
      throw new StoreError('full', `A record has ${bytes.length} bytes; ${MAX_RECORD_BYTES} are the most.`);
    }
    const most = this.#store.maxMessageBytes;
    if (bytes.length <= most && !text.startsWith('#')) return text;
    const nonce = randomBytes(12).toString('hex');
    const count = Math.ceil(bytes.length / most);
    const kv = await this.#opened();
    const digest = createHash('sha256');
    for (let i = 0; i < count; i += PARTS_AT_ONCE) {
      const some = Array.from({ length: Math.min(PARTS_AT_ONCE, count - i) }, (_, j) => i + j);
      digest.update(bytes.subarray(i * most, (i + PARTS_AT_ONCE) * most));
      await Promise.all(
        some.map((part) => {
          const slice = bytes.subarray(part * most, (part + 1) * most);
          return this.#store.ask(() => kv.put(`${PARTS}.${nonce}.${part}`, slice));
        }),
      );
    }
    return `#parts ${nonce} ${count} ${digest.digest('hex')}`;
  }

  /** The text that a value stands for; null: parts of it are not there. */
  async #textOf(value: string): Promise<string | null> {
    const parted = PARTED.exec(value);
    if (parted === null) return value;
    const [, nonce, count, expected] = parted;
    const digest = createHash('sha256');
    const kv = await this.#opened();
    const parts: Uint8Array[] = [];
    for (let part = 0; part < Number(count); part++) {
      const entry = await this.#store.ask(() => kv.get(`${PARTS}.${nonce}.${part}`));
      if (entry === null || entry.operation !== 'PUT') return null;
      parts.push(entry.value);
      digest.update(entry.value);
    }
    return digest.digest('hex') === expected ? Buffer.concat(parts).toString() : null;
  }

  /** Takes the parts of a value away; nothing where it has none. Never rejects: they go with their age at the latest. */
  async #dropParts(value: string): Promise<void> {
    const [, nonce, count] = PARTED.exec(value) ?? [];
    for (let part = 0; part < Number(count ?? 0); part++) {
      try {
        const kv = await this.#opened();
        const entry = await this.#store.ask(() => kv.get(`${PARTS}.${nonce}.${part}`));
        if (entry !== null) await this.#store.erase(entry.revision);
      } catch {
        // The next one may be there.
      }
    }
  }
}

function damaged(bucket: string, key: string): StoreError {
  return new StoreError('foreign', `The record ${key} of the bucket ${bucket} lacks a part.`);
}
