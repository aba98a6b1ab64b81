import { createReadStream } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { notStored } from './file-errors.js';
import { PART, RECORD } from './record-file.js';
import type { ContentStore, ContentWriter } from './record-store.js';
import { FILE_ID } from './stored-file.js';

const READ_BYTES = 2 ** 18;

/** Contents in files of a folder that this process has for itself; .part is at the end of a name while the file is written. */
export class FolderContents implements ContentStore {
  readonly #folder: () => Promise<string>;

  /** @param folder returns the folder, made where it is not there */
  constructor(folder: () => Promise<string>) {
    this.#folder = folder;
  }

  async begin(id: string): Promise<ContentWriter> {
    const path = await this.#pathOf(id);
    try {
      return new FolderContent(path, await open(`${path}${PART}`, 'wx', 0o600), true);
    } catch (error) {
      throw notStored(error);
    }
  }

  async goOn(id: string, keepBytes: number): Promise<ContentWriter> {
    const path = await this.#pathOf(id);
    try {
      const file = await open(path, 'a', 0o600);
      await file.truncate(keepBytes);
      return new FolderContent(path, file, false);
    } catch (error) {
      throw notStored(error);
    }
  }

  async read(id: string, from = 0): Promise<AsyncIterable<Buffer> | null> {
    const path = await this.#pathOf(id);
    try {
      const file = await open(path);
      return createReadStream('', { fd: file, start: from, highWaterMark: READ_BYTES });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw notStored(error);
    }
  }

  async size(id: string): Promise<number | null> {
    const found = await lstat(join(await this.#folder(), id)).catch(() => null);
    return found?.isFile() ? found.size : null;
  }

  async remove(id: string): Promise<void> {
    const path = await this.#pathOf(id);
    for (const one of [path, `${path}${PART}`]) await rm(one, { force: true }).catch(() => {});
  }

  async ids(): Promise<string[]> {
    // The folder may hold other files.
    const names = (await readdir(await this.#folder())).filter((name) => !name.endsWith(RECORD));
    return [...new Set(names.map((name) => name.replace(PART, '')))].filter((id) => FILE_ID.test(id));
  }

  /** @throws ApiError where the id is invalid, the path is a link, or the disk reports an error */
  async #pathOf(id: string): Promise<string> {
    try {
      if (!FILE_ID.test(id)) throw new Error(`The file id ${JSON.stringify(id)} is none of this store's.`);
      const path = join(await this.#folder(), id);
      const there = await lstat(path).catch(() => null);
      // Another process may have put it there, and it may lead anywhere.
      if (there !== null && !there.isFile()) throw new Error(`${path} is not a file.`);
      return path;
    } catch (error) {
      throw notStored(error);
    }
  }
}

class FolderContent implements ContentWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  /** True where it appears under its name when it is whole. */
  readonly #isPart: boolean;
  #written: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(path: string, file: FileHandle, isPart: boolean) {
    this.#path = path;
    this.#file = file;
    this.#isPart = isPart;
  }

  /** Each piece is appended whole, so that a process that ends leaves at most one torn piece at the end. */
  append(bytes: Uint8Array): Promise<void> {
    const written = this.#written.then(() => this.#file.appendFile(bytes)).catch(refuse);
    // The caller that wrote it receives its failure.
    written.catch(() => {});
    this.#written = written;
    return written;
  }

  async finish(): Promise<void> {
    try {
      if (this.#isPart) await this.#written;
      else await this.#written.catch(() => {});
      await this.#file.datasync();
      await this.#file.close();
      if (this.#isPart) await rename(`${this.#path}${PART}`, this.#path);
      this.#isOver = true;
    } catch (error) {
      throw notStored(error);
    }
  }

  async discard(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#written.catch(() => {});
    await this.#file.close().catch(() => {});
    await rm(this.#isPart ? `${this.#path}${PART}` : this.#path, { force: true }).catch(() => {});
  }
}

function refuse(error: unknown): never {
  throw notStored(error);
}
