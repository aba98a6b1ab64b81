import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { getSystemErrorMap } from 'node:util';
import { SkeinError } from '../../../../base/skein-error.js';

/** Flag that makes opening a pipe fail instead of waiting; it has no effect on files. Windows does not have it. */
const NONBLOCK = constants.O_NONBLOCK ?? 0;

/**
 * A file that is read or written by position, so that a truncated file or a full disk causes an error and not a signal.
 */
export class PositionedFile {
  readonly size: number;
  readonly #path: string;
  readonly #descriptor: number;
  readonly #isTarget: boolean;

  private constructor(path: string, isTarget: boolean) {
    this.#path = path;
    this.#isTarget = isTarget;
    const flags = isTarget ? constants.O_WRONLY : constants.O_RDONLY;
    try {
      this.#descriptor = openSync(path, flags | NONBLOCK);
    } catch (error) {
      throw this.fault(`cannot be opened: ${reasonOf(error)}.`);
    }
    const status = fstatSync(this.#descriptor);
    if (!status.isFile()) {
      this.close();
      throw this.fault('is not a regular file.');
    }
    this.size = status.size;
  }

  static forReading(path: string): PositionedFile {
    return new PositionedFile(path, false);
  }

  static forWriting(path: string): PositionedFile {
    return new PositionedFile(path, true);
  }

  /** Fills `bytes` from an offset on. */
  read(bytes: Uint8Array, offset: number): void {
    for (let done = 0; done < bytes.length; ) {
      const at = offset + done;
      let got: number;
      try {
        got = readSync(this.#descriptor, bytes, done, bytes.length - done, at);
      } catch (error) {
        throw this.fault(`cannot be read at byte ${at}: ${reasonOf(error)}.`);
      }
      if (got === 0) {
        throw this.fault(`ended at byte ${at} while it was read; it was ${this.size} bytes long before.`);
      }
      done += got;
    }
  }

  write(bytes: Uint8Array, offset: number): void {
    for (let done = 0; done < bytes.length; ) {
      try {
        done += writeSync(this.#descriptor, bytes, done, bytes.length - done, offset + done);
      } catch (error) {
        throw this.fault(`cannot be written: ${reasonOf(error)}.`);
      }
    }
  }

  /** An error that names this file. */
  fault(what: string): Error {
    const message = `${this.#path}: ${what}`;
    return this.#isTarget ? new TargetFileError(message) : new Error(message);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** The system's words for the reason: `No such file or directory`. */
function reasonOf(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  const text = (errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1]) ?? message;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The file that weights are converted into is at fault, and not one that is read. The addon's errors have the same code. */
class TargetFileError extends SkeinError {
  override name = 'TargetFileError';
  override readonly code = 'SKEIN_TARGET_FILE';
}
