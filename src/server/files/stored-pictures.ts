import { type PictureSources, refused } from '../../generation/pictures/picture-files.js';
import type { FileStore } from './file-store.js';
import type { FilePurpose, StoredFile } from './stored-file.js';

/** What a file is for that may be a picture of a request. */
const PURPOSES: readonly FilePurpose[] = ['vision', 'user_data'];

/**
 * The way to pictures among the files of one API key; those of others are not found.
 * @throws ApiError 404 for a file that is not there, InvalidRequestError for one that is for something else; the store's errors
 */
export function storedPictures(own: ReturnType<FileStore['of']>): NonNullable<PictureSources['stored']> {
  const find = async (id: string, place: string): Promise<StoredFile> => {
    const file = await own.get(id, place);
    if (PURPOSES.includes(file.purpose)) return file;
    throw refused(
      place,
      `names a file for '${file.purpose}'; pictures are files for ${PURPOSES.join(' or ')}.`,
    );
  };
  return async (named, { take, signal }) => {
    const found: StoredFile[] = [];
    for (const { name, place } of named) {
      const file = await find(name, place);
      take(file.bytes);
      found.push(file);
    }
    const files: Uint8Array[] = [];
    for (const file of found) {
      signal?.throwIfAborted();
      files.push(file.bytes === 0 ? new Uint8Array(0) : await wholeOf(await own.content(file), file.bytes));
    }
    return files;
  };
}

/** A content of known length; anything after that is not read. */
async function wholeOf(content: AsyncIterable<Buffer>, length: number): Promise<Uint8Array> {
  const bytes = Buffer.alloc(length);
  let at = 0;
  for await (const chunk of content) {
    at += chunk.copy(bytes, at);
    if (at === length) break;
  }
  return bytes.subarray(0, at);
}
