import { readSync, writeSync } from 'node:fs';
import { constants, type FileHandle, open } from 'node:fs/promises';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../infer-failure.js';

/** Where Linux has the objects of shm_open. */
const FOLDER = '/dev/shm/';
/** Bytes of a name there. */
const LONGEST_KEY = 255;
/**
 * Up to this many bytes are copied on this thread, which takes less time than the way to another and back.
 */
const SHORT = 64 * 1024;

/**
 * An object of shared memory, by its descriptor. It is read and written, never mapped: its creator may make
 * it shorter at any time, and this process would be killed where it touched a page of a map that is gone.
 */
export class RegionFile {
  readonly #handle: FileHandle;
  readonly #name: string;

  private constructor(handle: FileHandle, name: string) {
    this.#handle = handle;
    this.#name = name;
  }

  /**
   * Opens an object that is at least `bytes` long. @param name of the region, for refusals @param key as shm_open takes it: a name, with a
   * slash in front or without @throws InferError
   */
  static async open(name: string, key: string, bytes: number): Promise<RegionFile> {
    const handle = await opened(name, key);
    try {
      const stat = await handle.stat();
      if (stat.isFile() && stat.size >= bytes) return new RegionFile(handle, name);
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    throw malformed(`failed to register shared memory region '${name}': invalid args`);
  }

  /** Fills `into`. @throws InferError where the object has become shorter */
  async read(into: Uint8Array, offset: number): Promise<void> {
    const { fd } = this.#handle;
    for (let at = 0; at < into.length; ) {
      const rest = into.length - at;
      const bytesRead =
        rest <= SHORT
          ? readSync(fd, into, at, rest, offset + at)
          : (await this.#handle.read(into, at, rest, offset + at)).bytesRead;
      if (bytesRead === 0) throw this.#isShorter();
      at += bytesRead;
    }
  }

  /** Writes bytes in their place. @throws InferError where the object has become shorter: it is not made longer again */
  async write(bytes: Uint8Array, offset: number): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size < offset + bytes.length) throw this.#isShorter();
    const { fd } = this.#handle;
    for (let at = 0; at < bytes.length; ) {
      const rest = bytes.length - at;
      at +=
        rest <= SHORT
          ? writeSync(fd, bytes, at, rest, offset + at)
          : (await this.#handle.write(bytes, at, rest, offset + at)).bytesWritten;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #isShorter(): InferError {
    return malformed(
      `Invalid shared memory region: '${this.#name}' has become shorter than it was when it was registered`,
    );
  }
}

/** @throws InferError for a key that leads anywhere but to an object of shared memory, or to one that cannot be opened */
async function opened(name: string, key: string): Promise<FileHandle> {
  const file = key.replace(/^\/+/, '');
  const isKey =
    file !== '' &&
    file !== '.' &&
    file !== '..' &&
    !/[/\0]/.test(file) &&
    Buffer.byteLength(file) <= LONGEST_KEY;
  if (!isKey) throw malformed(`cannot register shared memory region '${name}' - invalid shm key '${key}'`);
  try {
    // As shm_open does; a pipe of this name would otherwise wait for a writer.
    const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return await open(FOLDER + file, flags);
  } catch {
    throw new InferError(`Unable to open shared memory region: '${key}'`, 'internal');
  }
}
