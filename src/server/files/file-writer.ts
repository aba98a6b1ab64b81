import { fileTooLong, noRoomForFile } from './file-errors.js';
import type { FileAccount } from './file-limits.js';
import type { ContentWriter } from './record-store.js';

/** A file that is being written: it counts from its first byte on, and appears when it is whole. */
export class FileWriter {
  readonly id: string;
  readonly owner: string;
  readonly #account: FileAccount;
  readonly #content: ContentWriter;
  #bytes = 0;
  #isOver = false;

  private constructor(id: string, owner: string, account: FileAccount, content: ContentWriter) {
    this.id = id;
    this.owner = owner;
    this.#account = account;
    this.#content = content;
  }

  /** @param begin begins the content @throws ApiError where there is no room; the store's errors */
  static async open(
    id: string,
    owner: string,
    account: FileAccount,
    begin: () => Promise<ContentWriter>,
  ): Promise<FileWriter> {
    const one = { files: 1, bytes: 0 };
    const lack = account.lack(owner, one);
    if (lack !== null) throw noRoomForFile(lack);
    account.count(owner, one);
    try {
      return new FileWriter(id, owner, account, await begin());
    } catch (error) {
      account.count(owner, { files: -1, bytes: 0 });
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws ApiError where the file grows too long; the store's errors */
  async write(chunk: Uint8Array): Promise<void> {
    const { maxFileBytes } = this.#account.limits;
    if (this.#bytes + chunk.length > maxFileBytes) throw fileTooLong(maxFileBytes);
    const more = { files: 0, bytes: chunk.length };
    const lack = this.#account.lack(this.owner, more);
    if (lack !== null) throw noRoomForFile(lack);
    this.#account.count(this.owner, more);
    this.#bytes += chunk.length;
    await this.#content.append(chunk);
  }

  /** The file is whole, and stored. @throws the store's errors */
  async finish(): Promise<void> {
    await this.#content.finish();
    this.#isOver = true;
  }

  /** Drops what is written; nothing where the file is whole. */
  async discard(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#account.count(this.owner, { files: -1, bytes: -this.#bytes });
    await this.#content.discard();
  }
}
