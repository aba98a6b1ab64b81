import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Folders of what is stored. */
export interface StoragePaths {
  files: string;
  batches: string;
}

/**
 * The folder of files and batches: a given one, whose content outlives the server, or a temporary one, which is made
 * when something is first stored and removed at the end.
 */
export class StorageFolder {
  readonly #given: string | null;
  #paths: Promise<StoragePaths> | null = null;
  #temporary: string | null = null;

  constructor(given: string | null) {
    this.#given = given;
  }

  /** True where what is stored outlives the server. */
  get isKept(): boolean {
    return this.#given !== null;
  }

  /** The folders, made where they are not there. @throws Error of the system */
  paths(): Promise<StoragePaths> {
    if (this.#paths !== null) return this.#paths;
    const making = this.#make();
    this.#paths = making;
    making.catch(() => {
      this.#paths = null;
    });
    return making;
  }

  async #make(): Promise<StoragePaths> {
    const root = this.#given ?? (await mkdtemp(join(tmpdir(), 'skein-files-')));
    if (this.#given === null) this.#temporary = root;
    const paths = { files: join(root, 'files'), batches: join(root, 'batches') };
    // Uploads of clients must not be readable by other users of this machine.
    for (const path of Object.values(paths)) await mkdir(path, { recursive: true, mode: 0o700 });
    return paths;
  }

  /** Removes a temporary folder. */
  async close(): Promise<void> {
    await this.#paths?.catch(() => {});
    if (this.#temporary !== null) await rm(this.#temporary, { recursive: true, force: true });
    this.#temporary = null;
    this.#paths = null;
  }
}
