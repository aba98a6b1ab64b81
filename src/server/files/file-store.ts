import { randomUUID } from 'node:crypto';
import { DEFAULT_FILE_LIMITS } from '../../options/server/requests.js';
import type { Caller } from '../web/access/api-keys.js';
import { begun } from './begun-content.js';
import { fileInUse, fileNotFound, orNotStored } from './file-errors.js';
import { FileAccount, type FileLimits, MAX_LIFE_S } from './file-limits.js';
import { FileWriter } from './file-writer.js';
import { FolderContents } from './folder-contents.js';
import { FolderRecords } from './folder-records.js';
import { MemoryRecords } from './memory-records.js';
import type { ContentStore, ContentWriter, RecordStore, StoredRecord } from './record-store.js';
import { StorageFolder } from './storage-folder.js';
import { FILE_ID, readStoredFile, type StoredFile } from './stored-file.js';

export interface FileStoreOptions {
  /** Folder whose content outlives the server; null: a temporary one. */
  folder: string | null;
  /** Stores that other servers share, in place of a folder; null: there are none. */
  shared: SharedFiles | null;
  limits: FileLimits;
  /** Returns true where several API keys share the limits. */
  isShared: () => boolean;
}

/** Where several servers keep their files together. */
export interface SharedFiles {
  records: RecordStore;
  contents: ContentStore;
}

/** What a client states about a file. */
export type FileFacts = Pick<StoredFile, 'filename' | 'purpose'> & { lifeSeconds?: number | undefined };

/** The present time in seconds since 1970. */
export const nowSeconds = () => Math.floor(Date.now() / 1000);

export const newFileId = () => `file-${randomUUID().replaceAll('-', '')}`;

/** What is being written, and counts although it has no record. */
interface Unfinished {
  owner: string;
  readonly bytes: number;
}

/**
 * Files of clients, by id: only the API key that stored a file finds it. A record is written after its
 * content: without one there is no file. In a folder:
 *
 *   files/file-5f1c        the content; .part at the end of the name while it is written
 *   files/file-5f1c.json   its record
 */
export class FileStore {
  readonly account: FileAccount;
  readonly storage: StorageFolder;
  /** True where other servers have the same files. */
  readonly isShared: boolean;
  /** True where a batch that has not ended, on any server, reads a file. */
  isInput: (id: string) => Promise<boolean> = async () => false;
  readonly #records: RecordStore;
  readonly #contents: ContentStore;
  readonly #read = new WeakMap<StoredRecord, StoredFile | null>();
  /** How many batches of this server read a file. */
  readonly #uses = new Map<string, number>();
  readonly #unfinished = new Map<string, Unfinished>();
  /** Files of a folder whose contents are not there, or have another length. */
  readonly #sizes = new Map<string, number | null>();
  /** Contents of a shared store that had no record at the last look, with their sizes. */
  #strays = new Map<string, number | null>();
  #loading: Promise<void> | null = null;

  constructor({
    folder = null,
    shared = null,
    limits = DEFAULT_FILE_LIMITS,
    isShared = () => false,
  }: Partial<FileStoreOptions> = {}) {
    this.storage = new StorageFolder(folder);
    this.isShared = shared !== null;
    const files = async () => (await this.storage.paths()).files;
    // The records of a temporary folder are never looked up again.
    const own = folder === null ? new MemoryRecords() : new FolderRecords(files);
    this.#records = shared?.records ?? own;
    this.#contents = shared?.contents ?? new FolderContents(files);
    this.account = new FileAccount(limits, isShared);
  }

  /** True where what is stored outlives the server. */
  get isKept(): boolean {
    return this.isShared || this.storage.isKept;
  }

  /** Counts what is in a folder that was given; once. @throws ApiError */
  async load(): Promise<void> {
    if (this.isShared || !this.storage.isKept) return;
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = null;
      throw orNotStored(error);
    });
    await this.#loading;
  }

  async #load(): Promise<void> {
    for (const file of await this.#all()) {
      const bytes = await this.#contents.size(file.id);
      if (bytes !== file.bytes) this.#sizes.set(file.id, bytes);
      if (bytes !== null) this.account.count(file.owner, { files: 1, bytes });
    }
  }

  /** Drops contents that no record, no upload and none of these ids accounts for. */
  async dropStrays(ids: ReadonlySet<string>): Promise<void> {
    // What is under way now may get its record at any moment; what begins later is not among these contents.
    const underWay = new Set(this.#unfinished.keys());
    const contents = await this.#contents.ids();
    const known = new Set((await this.#records.list()).map(({ key }) => key));
    const found = new Map<string, number | null>();
    for (const id of contents) {
      if (!FILE_ID.test(id) || known.has(id) || ids.has(id) || underWay.has(id)) continue;
      if (this.#unfinished.has(id)) continue;
      const size = this.isShared ? await this.#contents.size(id) : null;
      // Another server may be writing it: then it is longer at the next look.
      if (this.isShared && this.#strays.get(id) !== size) found.set(id, size);
      else await this.#contents.remove(id);
    }
    this.#strays = found;
  }

  /** The caller's own files; those of others are not visible. */
  of({ name }: Pick<Caller, 'name'>): OwnFiles {
    return new OwnFiles(this, name);
  }

  /** Begins a file. @throws ApiError where there is no room, or the store gives an error. */
  async begin(owner: string, id = newFileId()): Promise<FileWriter> {
    await this.load();
    await this.sweep();
    if (this.isShared) await this.#recount();
    // The owner is known before the content exists, so the content is never taken for one without an owner.
    this.#unfinished.set(id, { owner, bytes: 0 });
    try {
      const writer = await FileWriter.open(id, owner, this.account, () => this.#contents.begin(id));
      this.#unfinished.set(id, writer);
      return writer;
    } catch (error) {
      this.#unfinished.delete(id);
      throw orNotStored(error);
    }
  }

  async #recount(): Promise<void> {
    const files = await this.#all();
    this.account.reset();
    for (const { owner, bytes } of [...files, ...this.#unfinished.values()])
      this.account.count(owner, { files: 1, bytes });
  }

  /** Ends a file that is whole. @throws ApiError where the store gives an error. */
  async finish(writer: FileWriter, owner: string, facts: FileFacts): Promise<StoredFile> {
    const { id } = writer;
    await writer.finish();
    try {
      return await this.record(id, owner, writer.bytes, facts);
    } catch (error) {
      this.#unfinished.delete(id);
      this.account.count(owner, { files: -1, bytes: -writer.bytes });
      await this.#contents.remove(id).catch(() => {});
      throw error;
    }
  }

  /** Drops a file that is not whole. */
  async discard(writer: FileWriter): Promise<void> {
    await writer.discard();
    this.#unfinished.delete(writer.id);
  }

  /** Continues a content that has no record yet, and counts as a file. @throws ApiError */
  async goOn(id: string, owner: string, keepBytes: number, counted: Unfinished): Promise<ContentWriter> {
    const content = await this.#contents.goOn(id, keepBytes);
    this.account.count(owner, { files: 1, bytes: keepBytes });
    this.#unfinished.set(id, counted);
    return content;
  }

  /** Ends what goOn has begun, without a file where it is empty. */
  async endEmpty(id: string, owner: string): Promise<void> {
    this.#unfinished.delete(id);
    this.account.count(owner, { files: -1, bytes: 0 });
    await this.#contents.remove(id);
  }

  /** Gives up what goOn has begun: another server, or this one, continues it. */
  letGo(id: string): void {
    const counted = this.#unfinished.get(id);
    if (counted === undefined) return;
    this.#unfinished.delete(id);
    this.account.count(counted.owner, { files: -1, bytes: -counted.bytes });
  }

  /** Writes the record of a content that is whole, and counted. @throws ApiError where the store gives an error. */
  async record(id: string, owner: string, bytes: number, facts: FileFacts): Promise<StoredFile> {
    const { filename, purpose, lifeSeconds = MAX_LIFE_S } = facts;
    const createdAt = nowSeconds();
    const file = { id, owner, bytes, createdAt, expiresAt: createdAt + lifeSeconds, filename, purpose };
    try {
      await this.#records.put(id, JSON.stringify(file), 0);
    } catch (error) {
      throw orNotStored(error);
    }
    this.#sizes.delete(id);
    this.#unfinished.delete(id);
    return file;
  }

  /** Takes the record of a content away, so that more can be written to it. */
  async reopen(id: string): Promise<void> {
    const file = await this.find(id);
    if (file === null) return;
    await this.#records.remove(id);
    this.account.count(file.owner, { files: -1, bytes: -file.bytes });
  }

  /** A file of whichever owner; null: there is none. @throws ApiError */
  async find(id: string): Promise<StoredFile | null> {
    if (!FILE_ID.test(id)) return null;
    try {
      const record = await this.#records.get(id);
      return record === null ? null : this.#fileOf(record);
    } catch (error) {
      throw orNotStored(error);
    }
  }

  /** Files in the order of their creation. */
  async #all(): Promise<StoredFile[]> {
    try {
      const files = (await this.#records.list()).flatMap((record) => this.#fileOf(record) ?? []);
      return files.sort((one, other) => one.createdAt - other.createdAt);
    } catch (error) {
      throw orNotStored(error);
    }
  }

  #fileOf(record: StoredRecord): StoredFile | null {
    let file = this.#read.get(record);
    if (file === undefined) {
      file = readStoredFile(record.text, record.key);
      this.#read.set(record, file);
    }
    const bytes = this.#sizes.get(record.key);
    if (file === null || bytes === undefined) return file;
    return bytes === null ? null : { ...file, bytes };
  }

  async list(owner: string): Promise<StoredFile[]> {
    await this.sweep();
    return (await this.#all()).filter((file) => file.owner === owner);
  }

  async get(owner: string, id: string): Promise<StoredFile | null> {
    const file = await this.find(id);
    if (file?.owner !== owner) return null;
    return file.expiresAt > nowSeconds() || (await this.isUsed(id)) ? file : null;
  }

  /**
   * The bytes of a file, or of the answers of a batch so far; null: there are none.
   * @param least bytes that it is known to have @throws ApiError; the store's errors
   */
  async content(id: string, least = 0): Promise<AsyncIterable<Buffer> | null> {
    try {
      return await this.#contents.read(id, 0, least);
    } catch (error) {
      throw orNotStored(error);
    }
  }

  /** A batch reads the file: it is neither deleted nor expires until the returned function is called. */
  use(id: string): () => void {
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1);
    let isUsed = true;
    return () => {
      if (!isUsed) return;
      isUsed = false;
      const left = this.#uses.get(id)! - 1;
      if (left === 0) this.#uses.delete(id);
      else this.#uses.set(id, left);
    };
  }

  async isUsed(id: string): Promise<boolean> {
    return this.#uses.has(id) || (this.isShared && (await this.isInput(id)));
  }

  /** Removes a file. Who reads it now reads it to its end, unless it is shared. */
  async remove(file: StoredFile): Promise<void> {
    // Without its record the content has no owner, should the process end in between.
    if (!(await this.#records.remove(file.id))) return;
    this.account.count(file.owner, { files: -1, bytes: -file.bytes });
    await this.#contents.remove(file.id);
  }

  /** Removes files that have expired. */
  async sweep(): Promise<void> {
    const now = nowSeconds();
    for (const file of await this.#all()) {
      if (file.expiresAt <= now && !(await this.isUsed(file.id))) await this.remove(file);
    }
  }

  /** Removes a temporary folder. */
  close(): Promise<void> {
    return this.storage.close();
  }
}

/** Files of one API key. */
class OwnFiles {
  readonly #store: FileStore;
  readonly #owner: string;

  constructor(store: FileStore, owner: string) {
    this.#store = store;
    this.#owner = owner;
  }

  async list(): Promise<StoredFile[]> {
    await this.#store.load();
    return this.#store.list(this.#owner);
  }

  /** @throws ApiError 404. */
  async get(id: string, param: string | null = null): Promise<StoredFile> {
    await this.#store.load();
    const file = await this.#store.get(this.#owner, id);
    if (file === null) throw fileNotFound(id, param);
    return file;
  }

  /** The bytes of a file, of which the first are there. @throws ApiError 404; the store's errors */
  async content({ id, bytes }: StoredFile): Promise<AsyncIterable<Buffer>> {
    const content = await this.#store.content(id, bytes);
    if (content === null) throw fileNotFound(id);
    return begun(content);
  }

  /** @throws ApiError 404; 400 where a batch reads it. */
  async delete(id: string): Promise<void> {
    const file = await this.get(id);
    if (await this.#store.isUsed(id)) throw fileInUse(id);
    await this.#store.remove(file);
  }

  begin(): Promise<FileWriter> {
    return this.#store.begin(this.#owner);
  }

  finish(writer: FileWriter, facts: FileFacts): Promise<StoredFile> {
    return this.#store.finish(writer, this.#owner, facts);
  }

  discard(writer: FileWriter): Promise<void> {
    return this.#store.discard(writer);
  }
}
