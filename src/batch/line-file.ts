import { type FileHandle, open, unlink } from 'node:fs/promises';
import { asSentence } from '../../base/sentences.js';
import { BatchFileError } from './batch-files.js';

/**
 * A file that grows line by line. Each line is appended whole, so that a process that ends leaves whole
 * lines, and at most one torn one at the end.
 */
export class LineFile {
  readonly path: string;
  readonly #file: FileHandle;
  #bytes: number;
  /** Done when all lines so far are written. */
  #written: Promise<void> = Promise.resolve();

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.path = path;
    this.#file = file;
    this.#bytes = bytes;
  }

  /**
   * Opens a file to write on after its first `keepBytes` bytes; anything after them is cut off.
   * @throws BatchFileError.
   */
  static async open(path: string, keepBytes: number): Promise<LineFile> {
    try {
      const file = await open(path, 'a');
      await file.truncate(keepBytes);
      return new LineFile(path, file, keepBytes);
    } catch (error) {
      throw notWritable(path, error);
    }
  }

  /** Number of bytes of its lines, those included that are being written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Writes a line of JSON. @throws BatchFileError where it, or one before it, could not be written. */
  write(json: string): Promise<void> {
    const bytes = Buffer.from(`${json}\n`);
    this.#bytes += bytes.length;
    const written = this.#written.then(() => this.#append(bytes));
    // The caller that wrote the line receives its failure.
    written.catch(() => {});
    this.#written = written;
    return written;
  }

  async #append(bytes: Buffer): Promise<void> {
    try {
      await this.#file.appendFile(bytes);
    } catch (error) {
      throw notWritable(this.path, error);
    }
  }

  /** Closes the file, whose lines are on the disk then. With `unlinkEmpty` a file that nothing was written to is deleted. */
  async close({ unlinkEmpty = false } = {}): Promise<void> {
    await this.#written.catch(() => {});
    await this.#file.datasync().catch(() => {});
    await this.#file.close();
    if (unlinkEmpty && this.#bytes === 0) await unlink(this.path);
  }
}

const WRITE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder is not there.',
  ENOTDIR: 'its folder is not there.',
  EISDIR: 'it is a folder.',
  EACCES: 'this user may not write it.',
  EPERM: 'this user may not write it.',
  EROFS: 'the file system is read-only.',
  ENOSPC: 'the disk is full. What is in it stays good: the same command goes on from there.',
  EDQUOT:
    'the quota of disk space is used up. What is in it stays good: the same command goes on from there.',
};

function notWritable(path: string, error: unknown): BatchFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new BatchFileError(
    `${path} cannot be written: ${WRITE_PROBLEMS[code ?? ''] ?? asSentence(message)}`,
  );
}
