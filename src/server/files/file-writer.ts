import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { fileTooLong, noRoomForFile, notStored } from './file-errors.js';
import type { FileAccount } from './file-limits.js';
import { PART } from './record-file.js';

/** A file that is being written: it counts from its first byte on, and appears when it is whole. */
export class FileWriter {
  readonly id: string;
  readonly #owner: string;
  readonly #path: string;
  readonly #account: FileAccount;
  readonly #file: FileHandle;
  #bytes = 0;
  #isOver = false;

  private constructor(
    { id, owner, path, account }: { id: string; owner: string; path: string; account: FileAccount },
    file: FileHandle,
  ) {
    this.id = id;
    this.#owner = owner;
    this.#path = path;
    this.#account = account;
    this.#file = file;
  }

  /** @throws ApiError where there is no room, or the disk gives an error. */
  static async open(made: {
    id: string;
    owner: string;
    path: string;
    account: FileAccount;
  }): Promise<FileWriter> {
    const { owner, path, account } = made;
    const one = { files: 1, bytes: 0 };
    const lack = account.lack(owner, one);
    if (lack !== null) throw noRoomForFile(lack);
    account.count(owner, one);
    try {
      return new FileWriter(made, await open(`${path}${PART}`, 'wx', 0o600));
    } catch (error) {
      account.count(owner, { files: -1, bytes: 0 });
      throw notStored(error);
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws ApiError where the file grows too long, or the disk gives an error. */
  async write(chunk: Uint8Array): Promise<void> {
    const { maxFileBytes } = this.#account.limits;
    if (this.#bytes + chunk.length > maxFileBytes) throw fileTooLong(maxFileBytes);
    const more = { files: 0, bytes: chunk.length };
    const lack = this.#account.lack(this.#owner, more);
    if (lack !== null) throw noRoomForFile(lack);
    this.#account.count(this.#owner, more);
    this.#bytes += chunk.length;
    try {
      await this.#file.appendFile(chunk);
    } catch (error) {
      throw notStored(error);
    }
  }

  /** The file is whole, and on the disk. @throws ApiError where the disk gives an error. */
  async finish(): Promise<void> {
    try {
      await this.#file.datasync();
      await this.#file.close();
      await rename(`${this.#path}${PART}`, this.#path);
      this.#isOver = true;
    } catch (error) {
      throw notStored(error);
    }
  }

  /** Drops what is written; nothing where the file is whole. */
  async discard(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#account.count(this.#owner, { files: -1, bytes: -this.#bytes });
    await this.#file.close().catch(() => {});
    await rm(`${this.#path}${PART}`, { force: true }).catch(() => {});
  }
}
