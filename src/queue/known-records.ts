import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { StoreError } from '../../base/store-errors.js';
import { isModelCard, type ModelCard, modelKey } from '../../cluster/nats/beat.js';
import type { RecordStore } from '../server/files/record-store.js';

/** A model as it is kept. */
export interface KnownModel {
  /** Key of its record. */
  key: string;
  card: ModelCard;
  /** When a gateway last had a worker of it, to about a day, in Unix milliseconds. */
  seenMs: number;
}

/** What is kept at one time. */
export interface KnownList {
  /** Name of the store since it was begun; null: it is new, or has lost all. */
  epoch: string | null;
  models: KnownModel[];
}

const VERSION = 1;
const MODELS = 'models';
/** No model's key: those end with a digest. */
const EPOCH = `${MODELS}.epoch`;
const DAY_MS = 86_400_000;
const DIGEST = /^[0-9a-f]{64}$/;
const packed = promisify(gzip);
const unpacked = promisify(gunzip);

/**
 * The models that gateways know, with or without a worker, in a store of records.
 *
 *   models.NAME-DIGEST   card of a model, as JSON, and when it last had a worker
 *   models.epoch         name of the store: with another one it has lost all, and a missing record was not removed by anybody
 *   files.DIGEST         a file of a model, packed (gzip, base64)
 */
export class KnownRecords {
  readonly #records: RecordStore;
  readonly #keepsFiles: boolean;

  /** @param keepsFiles false: files lie where every process that has these records finds them */
  constructor(records: RecordStore, keepsFiles: boolean) {
    this.#records = records;
    this.#keepsFiles = keepsFiles;
  }

  /** Records of other versions are left out. @throws StoreError */
  async list(): Promise<KnownList> {
    const list: KnownList = { epoch: null, models: [] };
    for (const { key, text } of await this.#records.list(MODELS)) {
      if (key === EPOCH) list.epoch = text;
      else {
        const known = readKnown(text);
        if (known !== null && keyOf(known.card.name) === key) list.models.push({ key, ...known });
      }
    }
    return list;
  }

  /** Names a store that has no name. @returns its name @throws StoreError */
  async begin(): Promise<string> {
    const epoch = randomUUID();
    const written = await this.#records.put(EPOCH, epoch, 0);
    return written === null ? ((await this.#records.get(EPOCH))?.text ?? epoch) : epoch;
  }

  /**
   * Keeps a model that has a worker, unless that was done less than a day ago.
   * @param folder with its files @throws StoreError, an Error of the system
   */
  async keep(card: ModelCard, folder: string, nowMs = Date.now()): Promise<void> {
    const key = keyOf(card.name);
    const before = await this.#records.get(key);
    const known = before === null ? null : readKnown(before.text);
    if (known !== null && !isStale({ key, ...known }, card, nowMs)) return;
    if (this.#keepsFiles) for (const file of card.files) await this.#keepFile(folder, file);
    const text = JSON.stringify({ version: VERSION, seenMs: nowMs, card });
    // Another gateway may be faster: it has the same.
    await this.#records.put(key, text, before?.revision ?? 0);
  }

  /** Files are rewritten with their model: the others expire by age. */
  async #keepFile(folder: string, { name, digest }: ModelCard['files'][number]): Promise<void> {
    if (!DIGEST.test(digest)) return;
    const bytes = await readFile(join(folder, name)).catch(() => null);
    // What gateways do not fetch is not there.
    if (bytes === null) return;
    const key = `files.${digest}`;
    const before = await this.#records.get(key);
    const text = before?.text ?? (await packed(bytes)).toString('base64');
    await this.#records.put(key, text, before?.revision ?? 0);
  }

  /** Forgets a model. @throws StoreError */
  async remove(key: string): Promise<void> {
    await this.#records.remove(key);
  }

  /** Reads from files of a model that are kept: see fetchFiles. */
  reader({ files }: ModelCard): (name: string, offset: number) => Promise<Uint8Array> {
    const whole = new Map<string, Promise<Uint8Array>>();
    return async (name, offset) => {
      const file = files.find((one) => one.name === name)!;
      const bytes = whole.get(name) ?? this.#file(file);
      whole.set(name, bytes);
      return (await bytes).subarray(offset);
    };
  }

  async #file({ name, digest, bytes }: ModelCard['files'][number]): Promise<Uint8Array> {
    const record = DIGEST.test(digest) ? await this.#records.get(`files.${digest}`) : null;
    if (record === null) throw new StoreError('foreign', `its ${name} is not kept any more`);
    return unpacked(Buffer.from(record.text, 'base64'), { maxOutputLength: Math.max(1, bytes) });
  }
}

/** True where a record has to be rewritten for a model that has a worker. */
export function isStale({ card: kept, seenMs }: KnownModel, card: ModelCard, nowMs: number): boolean {
  // A clock that was set back makes no difference.
  return modelKey(kept) !== modelKey(card) || Math.abs(nowMs - seenMs) >= DAY_MS;
}

/** The record of a model's name: readable, and no other name's. */
function keyOf(name: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${MODELS}.${name.replace(/[^\w-]+/g, '_').slice(0, 64)}-${digest}`;
}

/** null: it is no record of a model. */
function readKnown(text: string): Pick<KnownModel, 'card' | 'seenMs'> | null {
  try {
    const { version, seenMs, card } = JSON.parse(text);
    return version === VERSION && Number.isFinite(seenMs) && isModelCard(card) ? { card, seenMs } : null;
  } catch {
    return null;
  }
}
