import { randomUUID } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_FILE_LIMITS } from '../../options/server/requests.js';
import type { Caller } from '../web/access/api-keys.js';
import { fileInUse, fileNotFound, notStored } from './file-errors.js';
import { FileAccount, type FileLimits, MAX_LIFE_S } from './file-limits.js';
import { FileWriter } from './file-writer.js';
import { PART, RECORD, readRecord, writeWhole } from './record-file.js';
import { StorageFolder } from './storage-folder.js';
import { FILE_ID, readStoredFile, type StoredFile } from './stored-file.js';

export interface FileStoreOptions {
  /** Folder whose content outlives the server; null: a temporary one. */
  folder: string | null;
  limits: FileLimits;
  /** Returns true where several API keys share the limits. */
  isShared: () => boolean;
}

/** What a client tells of a file. */
export type FileFacts = Pick<StoredFile, 'filename' | 'purpose'> & { lifeSeconds?: number | undefined };

/** The present time in seconds since 1970. */
export const nowSeconds = () => Math.floor(Date.now() / 1000);

export const newFileId = () => `file-${randomUUID().replaceAll('-', '')}`;

/**
 * Files of clients, by id, in a folder: only the API key that stored a file finds it.
 *
 *   files/file-5f1c        the content; .part at the end of the name while it is written
 *   files/file-5f1c.json   its record, written behind the content: without one there is no file
 */
export class FileStore {
  readonly account: FileAccount;
  readonly storage: StorageFolder;
  /** Files in the order of their creation. */
  readonly #files = new Map<string, StoredFile>();
  /** How many batches read a file. */
  readonly #uses = new Map<string, number>();
  /** Contents that have no record yet, but will. */
  readonly #unfinished = new Set<string>();
  #loading: Promise<void> | null = null;

  constructor({
    folder = null,
    limits = DEFAULT_FILE_LIMITS,
    isShared = () => false,
  }: Partial<FileStoreOptions> = {}) {
    this.storage = new StorageFolder(folder);
    this.account = new FileAccount(limits, isShared);
  }

  /** Reads the records of a folder that was given; once. @throws ApiError */
  async load(): Promise<void> {
    if (!this.storage.isKept) return;
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = null;
      throw notStored(error);
    });
    await this.#loading;
  }

  async #load(): Promise<void> {
    const { files: folder } = await this.storage.paths();
    const names = await readdir(folder);
    const found: StoredFile[] = [];
    for (const name of names.filter((one) => one.endsWith(RECORD))) {
      const id = name.slice(0, -RECORD.length);
      const text = await readRecord(join(folder, name));
      const file = text === null ? null : readStoredFile(text, id);
      const content = file === null ? null : await lstat(join(folder, id)).catch(() => null);
      if (file !== null && content?.isFile()) found.push({ ...file, bytes: content.size });
    }
    for (const file of found.sort((one, other) => one.createdAt - other.createdAt)) this.#add(file);
  }

  /** Drops contents without records, other than those of the ids. */
  async dropStrays(ids: ReadonlySet<string>): Promise<void> {
    const { files: folder } = await this.storage.paths();
    for (const name of await readdir(folder)) {
      const id = name.endsWith(RECORD) ? name.slice(0, -RECORD.length) : name;
      const isOurs = this.#files.has(id) || ids.has(id) || this.#unfinished.has(id.replace(PART, ''));
      // Somebody may have put other files into the folder.
      if (!isOurs && FILE_ID.test(id.replace(PART, ''))) await rm(join(folder, name), { force: true });
    }
  }

  /** The caller's own files; those of others are not visible. */
  of({ name }: Pick<Caller, 'name'>): OwnFiles {
    return new OwnFiles(this, name);
  }

  /** Begins a file. @throws ApiError where there is no room, or the disk gives an error. */
  async begin(owner: string, id = newFileId()): Promise<FileWriter> {
    await this.load();
    this.sweep();
    const path = await this.pathOf(id);
    this.#unfinished.add(id);
    try {
      return await FileWriter.open({ id, owner, path, account: this.account });
    } catch (error) {
      this.#unfinished.delete(id);
      throw error;
    }
  }

  /** Ends a file that is whole. @throws ApiError where the disk gives an error. */
  async finish(writer: FileWriter, owner: string, facts: FileFacts): Promise<StoredFile> {
    await writer.finish();
    const { id, bytes } = writer;
    try {
      return await this.record(id, owner, bytes, facts);
    } catch (error) {
      this.account.count(owner, { files: -1, bytes: -bytes });
      await rm(await this.pathOf(id), { force: true }).catch(() => {});
      throw error;
    }
  }

  /** Drops a file that is not whole. */
  async discard(writer: FileWriter): Promise<void> {
    await writer.discard();
    if (!this.#files.has(writer.id)) this.#unfinished.delete(writer.id);
  }

  /** Writes the record of a content that is whole, and counted. @throws ApiError where the disk gives an error. */
  async record(id: string, owner: string, bytes: number, facts: FileFacts): Promise<StoredFile> {
    const { filename, purpose, lifeSeconds = MAX_LIFE_S } = facts;
    const createdAt = nowSeconds();
    const file = { id, owner, bytes, createdAt, expiresAt: createdAt + lifeSeconds, filename, purpose };
    try {
      await writeWhole(`${await this.pathOf(id)}${RECORD}`, JSON.stringify(file));
    } catch (error) {
      throw notStored(error);
    }
    this.#files.set(id, file);
    this.#unfinished.delete(id);
    return file;
  }

  /** Takes the record of a content away, so that more can be written to it. */
  async reopen(id: string): Promise<void> {
    const file = this.#files.get(id);
    this.#unfinished.add(id);
    if (file === undefined) return;
    this.#files.delete(id);
    this.account.count(file.owner, { files: -1, bytes: -file.bytes });
    await rm(`${await this.pathOf(id)}${RECORD}`, { force: true });
  }

  #add(file: StoredFile): void {
    this.#files.set(file.id, file);
    this.account.count(file.owner, { files: 1, bytes: file.bytes });
  }

  /** Path of a content, in the folder. @throws ApiError where the id is none, a link lies there, or the disk gives an error */
  async pathOf(id: string): Promise<string> {
    try {
      if (!FILE_ID.test(id)) throw new Error(`The file id ${JSON.stringify(id)} is none of this store's.`);
      const path = join((await this.storage.paths()).files, id);
      const there = await lstat(path).catch(() => null);
      // Somebody else has put it there, and it may lead anywhere.
      if (there !== null && !there.isFile()) throw new Error(`${path} is not a file.`);
      return path;
    } catch (error) {
      throw notStored(error);
    }
  }

  /** True where somebody else has a file of this id. */
  isOfOthers(owner: string, id: string): boolean {
    const file = this.#files.get(id);
    return file !== undefined && file.owner !== owner;
  }

  list(owner: string): StoredFile[] {
    this.sweep();
    return [...this.#files.values()].filter((file) => file.owner === owner);
  }

  get(owner: string, id: string): StoredFile | null {
    this.sweep();
    const file = this.#files.get(id);
    return file?.owner === owner ? file : null;
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

  isUsed(id: string): boolean {
    return this.#uses.has(id);
  }

  /** Removes a file. Who reads it now reads it to its end. */
  async remove(file: StoredFile): Promise<void> {
    if (!this.#files.delete(file.id)) return;
    this.account.count(file.owner, { files: -1, bytes: -file.bytes });
    const path = await this.pathOf(file.id);
    // Without its record the content is nobody's, should the process end in between.
    await rm(`${path}${RECORD}`, { force: true }).catch(() => {});
    await rm(path, { force: true }).catch(() => {});
  }

  /** Removes files that have expired. */
  sweep(): void {
    const now = nowSeconds();
    for (const file of this.#files.values()) {
      if (file.expiresAt <= now && !this.isUsed(file.id)) void this.remove(file);
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
    const file = this.#store.get(this.#owner, id);
    if (file === null) throw fileNotFound(id, param);
    return file;
  }

  /** @throws ApiError 404; 400 where a batch reads it. */
  async delete(id: string): Promise<void> {
    const file = await this.get(id);
    if (this.#store.isUsed(id)) throw fileInUse(id);
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
