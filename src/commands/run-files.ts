import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { PICTURE_TYPES, pictureKind } from '../../models/images/files/picture-kind.js';
import { PictureError } from '../../models/images/picture-error.js';
import { PICTURE_LIMITS } from '../../models/images/picture-limits.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { decodedText, markedText } from '../texts/file-text.js';

/** Most files of a question. */
export const MAX_FILES = 32;
/** Most bytes of the texts of all files together: a request may have 16 MiB. */
export const MAX_TEXT_BYTES = 8e6;

/** Files of a question, in their order. */
export interface AskedFiles {
  /** Texts, each under its file's name. */
  texts: readonly string[];
  /** Pictures as data: URLs. */
  pictures: readonly string[];
}

/**
 * Reads the files of a question. The type of a file is determined by its bytes, not its name.
 * @throws UsageError for a file that cannot be read, is neither a text nor a picture, or is too large
 */
export async function readFiles(paths: readonly string[]): Promise<AskedFiles> {
  if (paths.length > MAX_FILES)
    throw new UsageError(
      `--file is given ${paths.length} times; a question takes ${MAX_FILES} files at most.`,
    );
  const texts: string[] = [];
  const pictures: string[] = [];
  let [textBytes, pictureBytes] = [0, 0];
  for (const path of paths) {
    const bytes = await bytesOf(path);
    const type = pictureType(bytes);
    if (type === null) {
      textBytes += bytes.length;
      checkSum(path, textBytes, MAX_TEXT_BYTES, 'texts');
      texts.push(markedText({ name: basename(path), part: '', content: textOf(path, bytes) }));
    } else {
      pictureBytes += bytes.length;
      checkSum(path, pictureBytes, PICTURE_LIMITS.maxFileBytes, 'pictures');
      pictures.push(`data:${type};base64,${bytes.toString('base64')}`);
    }
  }
  return { texts, pictures };
}

async function bytesOf(path: string): Promise<Buffer> {
  try {
    const found = await stat(path);
    // Devices and pipes have no end, or none that comes.
    if (!found.isFile() && !found.isDirectory()) throw new Error('it is no file');
    const most = Math.max(MAX_TEXT_BYTES, PICTURE_LIMITS.maxFileBytes);
    if (found.size > most) throw new Error(`it has ${found.size} bytes, and may have ${most}`);
    return await readFile(path);
  } catch (error) {
    throw new UsageError(`--file ${path} cannot be read: ${fileProblem(error)}`);
  }
}

function pictureType(bytes: Uint8Array): string | null {
  try {
    return PICTURE_TYPES[pictureKind(bytes)];
  } catch (error) {
    if (error instanceof PictureError) return null;
    throw error;
  }
}

function textOf(path: string, bytes: Uint8Array): string {
  const text = decodedText(bytes);
  if (text === null)
    throw new UsageError(
      `--file ${path} is neither a text in UTF-8 or UTF-16 nor a picture (JPEG, PNG, WebP or GIF).`,
    );
  if (text.trim() === '') throw new UsageError(`--file ${path} is empty.`);
  return text.replace(/\n$/, '');
}

function checkSum(path: string, bytes: number, most: number, what: string): void {
  if (bytes <= most) return;
  throw new UsageError(
    `The ${what} of --file have ${bytes} bytes together with ${path}, and may have ${most}.`,
  );
}
