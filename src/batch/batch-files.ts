import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  realpathSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { asSentence } from '../../base/sentences.js';
import { SkeinError } from '../../base/skein-error.js';
import { fileProblem } from '../file-problem.js';
import { UsageError } from '../usage-error.js';
import { isObject } from './batch-line.js';
import { splitLines } from './split-lines.js';

/** An error for files of a batch that do not fit together, or cannot be written. */
export class BatchFileError extends SkeinError {
  override name = 'BatchFileError';
  override readonly code = 'SKEIN_BATCH_FILE';
}

/**
 * A file that grows line by line. Each line is written whole in one call, so that a process that ends leaves whole
 * lines, and at most one torn one at the end.
 */
export class LineFile {
  readonly path: string;
  readonly #descriptor: number;

  private constructor(path: string, descriptor: number) {
    this.path = path;
    this.#descriptor = descriptor;
  }

  /**
   * Opens a file to write on behind its first `keepBytes` bytes; anything behind them is cut off. @throws
   * BatchFileError.
   */
  static open(path: string, keepBytes: number): LineFile {
    try {
      const descriptor = openSync(path, 'a');
      ftruncateSync(descriptor, keepBytes);
      return new LineFile(path, descriptor);
    } catch (error) {
      throw new BatchFileError(`${path} cannot be written: ${writeProblem(error)}`);
    }
  }

  /** @throws BatchFileError where the line could not be written. */
  write(value: unknown): void {
    const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#descriptor, bytes, done);
    } catch (error) {
      throw new BatchFileError(`${this.path} cannot be written: ${writeProblem(error)}`);
    }
  }

  /** Closes the file. With `unlinkEmpty` a file that nothing was written to is deleted. */
  close({ unlinkEmpty = false } = {}): void {
    const isEmpty = unlinkEmpty && fstatSync(this.#descriptor).size === 0;
    closeSync(this.#descriptor);
    if (isEmpty) unlinkSync(this.path);
  }
}

/** Answers of an earlier run in the output file. */
export interface Answered {
  customIds: Set<string>;
  /** Number of bytes of the file's whole lines. */
  bytes: number;
}

/**
 * Reads the answers of an earlier run; a torn last line does not count.
 * @throws BatchFileError for a file with anything else in it, which is not touched.
 */
export async function readAnswered(path: string): Promise<Answered> {
  const answered: Answered = { customIds: new Set(), bytes: 0 };
  if (!existsSync(path)) return answered;
  try {
    for await (const { number, bytes, end, isWhole } of splitLines(path, Number.POSITIVE_INFINITY)) {
      if (!isWhole) break;
      const customId = customIdOf(bytes!);
      if (customId === undefined) {
        throw new BatchFileError(
          `${path} has a line ${number} that is no answer of a batch; name another file, or take --restart to write it anew.`,
        );
      }
      if (customId !== null) answered.customIds.add(customId);
      answered.bytes = end;
    }
  } catch (error) {
    if (error instanceof BatchFileError) throw error;
    throw new BatchFileError(`${path} cannot be read: ${fileProblem(error)}`);
  }
  return answered;
}

/**
 * The custom_id of an answer's line. undefined: the line is none of a batch's. null: it answers an input line without
 * one.
 */
function customIdOf(bytes: Buffer): string | null | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (!isObject(value) || typeof value.id !== 'string' || !value.id.startsWith('batch_req_'))
      return undefined;
    return typeof value.custom_id === 'string' ? value.custom_id : null;
  } catch {
    return undefined;
  }
}

/** @throws UsageError where two of the files are one. */
export function checkDistinctFiles(files: Readonly<Record<string, string>>): void {
  const seen = new Map<string, string>();
  for (const [what, path] of Object.entries(files)) {
    const real = existsSync(path) ? realpathSync(path) : path;
    const other = seen.get(real);
    if (other !== undefined)
      throw new UsageError(`${path} is given as ${other} and as ${what}; each needs a file of its own.`);
    seen.set(real, what);
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

function writeProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return WRITE_PROBLEMS[code ?? ''] ?? asSentence(message);
}
