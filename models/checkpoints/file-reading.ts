import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { messageOf } from '../../base/error-text.js';
import { parsePythonJson } from '../../base/python-json.js';
import { SkeinError } from '../../base/skein-error.js';
import { readProblem } from '../../base/system-problem.js';
import { CheckpointError } from './checkpoint.js';
import { checkBelow } from './open-only-below.js';

/**
 * Calls `use` with an open regular file and its size. @throws CheckpointError where the file cannot be opened or read.
 */
export function withFile<T>(path: string, use: (fd: number, size: number) => T): T {
  const fd = fileSystemErrors(path, () => {
    // The type is checked first: opening a device may do something.
    if (!statSync(path).isFile()) throw notRegular(path);
    // What has become a pipe meanwhile is not waited for.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  });
  try {
    return fileSystemErrors(path, () => {
      const status = fstatSync(fd);
      if (!status.isFile()) throw notRegular(path);
      checkBelow(fd, path, status.ino);
      return use(fd, status.size);
    });
  } finally {
    closeSync(fd);
  }
}

function notRegular(path: string): CheckpointError {
  return new CheckpointError(`${path}: is not a regular file.`);
}

/** Fills `target` from `offset` of the file. */
export function readExactly(path: string, fd: number, target: Uint8Array, offset: number): void {
  let done = 0;
  while (done < target.length) {
    const read = readSync(fd, target, done, target.length - done, offset + done);
    if (read === 0) {
      throw new CheckpointError(
        `${path}: ends at byte ${offset + done}; expected at least ${offset + target.length} bytes.`,
      );
    }
    done += read;
  }
}

/** Bytes of a file; null where there is no such file. */
export function readBytes(path: string, limitBytes: number): Buffer | null {
  const isThere = fileSystemErrors(path, () => statSync(path, { throwIfNoEntry: false }) !== undefined);
  if (!isThere) return null;
  return withFile(path, (fd, size) => {
    if (size > limitBytes) {
      throw new CheckpointError(
        `${path}: is ${size} bytes long; at most ${limitBytes} are expected of such a file.`,
      );
    }
    const bytes = Buffer.alloc(size);
    readExactly(path, fd, bytes, 0);
    return bytes;
  });
}

/** Text of a file; null where there is no such file. */
export function readText(path: string, limitBytes: number): string | null {
  return readBytes(path, limitBytes)?.toString('utf8') ?? null;
}

export type JsonObject = Record<string, unknown>;

/** JSON object in a file; null where there is no such file. */
export function readJsonObject(path: string, limitBytes: number): JsonObject | null {
  const text = readText(path, limitBytes);
  return text === null ? null : parseJsonObject(path, text);
}

/** Parses a JSON object. @param where names the file, and the part of it, in errors. */
export function parseJsonObject(where: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = parsePythonJson(text);
  } catch (error) {
    throw new CheckpointError(`${where}: is not valid JSON: ${messageOf(error).slice(0, 200)}.`);
  }
  if (!isObject(value)) throw new CheckpointError(`${where}: should hold a JSON object.`);
  return value;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Turns the file system's errors into a CheckpointError that names the file. */
export function fileSystemErrors<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof SkeinError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new CheckpointError(
      code === 'ENOENT' ? `${path}: no such file.` : `${path}: cannot be read: ${readProblem(error)}`,
      { cause: error },
    );
  }
}
