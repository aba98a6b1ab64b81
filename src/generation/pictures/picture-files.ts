import { PictureError } from '../../../models/images/picture-error.js';
import { checkFiles, PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { PicturePart } from './picture-part.js';

/** A picture's file that a request only names, and where it does. */
export interface NamedFile {
  /** Its address, or its id. */
  name: string;
  place: string;
}

export interface FileLoading {
  /** Most bytes of all files together. */
  maxBytes: number;
  /** Ends the wait. */
  signal?: AbortSignal | undefined;
  /** Called with bytes before they are taken; may throw. */
  hold?: ((bytes: number) => void) | undefined;
}

/** Ways to the files of pictures that a request only names. One that is absent is closed. */
export interface PictureSources {
  /** Files at addresses, in their order. @throws InvalidRequestError for an address that is refused; what else is in the way */
  fetched?(addresses: readonly NamedFile[], loading: FileLoading): Promise<Uint8Array[]>;
  /** Files that the request's caller has stored, in their order. @throws the same */
  stored?(ids: readonly NamedFile[], loading: FileLoading): Promise<Uint8Array[]>;
}

const NONE_FETCHED =
  'is the address of a picture, and this server fetches none: send its bytes in a data: URL. Its option --allow-image-urls (allowImageUrls of Skein.load) would let it.';
const NONE_STORED = 'names a stored file, and none are stored here: send its bytes in a data: URL.';

/**
 * The files of a request's pictures, in their order. Their number, and the bytes that are known, are looked at before one is loaded.
 * @param param name of the field with all of them @throws InvalidRequestError where they are too many or too large, or one is not there
 */
export async function filesOf(
  parts: readonly PicturePart[],
  { fetched, stored }: PictureSources,
  { signal, hold }: Omit<FileLoading, 'maxBytes'>,
  param: string,
): Promise<Uint8Array[]> {
  checkAll(parts, param);
  const files = parts.map(({ source, place }) => ('base64' in source ? fileOf(source.base64, place) : null));
  let maxBytes = PICTURE_LIMITS.maxFileBytes - files.reduce((sum, file) => sum + (file?.length ?? 0), 0);
  const load = async (kind: 'fileId' | 'url', way: PictureSources['stored'], closed: string) => {
    const places = parts.flatMap(({ source, place }, at) =>
      kind in source ? [{ at, name: (source as Record<typeof kind, string>)[kind], place }] : [],
    );
    const [first] = places;
    if (first === undefined) return;
    if (way === undefined) throw refused(first.place, closed);
    for (const [i, file] of (await way(places, { maxBytes, signal, hold })).entries()) {
      files[places[i]!.at] = file;
      maxBytes -= file.length;
    }
  };
  await load('fileId', stored, NONE_STORED);
  await load('url', fetched, NONE_FETCHED);
  return files as Uint8Array[];
}

/** @throws InvalidRequestError where there are too many pictures, or their files are too large */
function checkAll(parts: readonly PicturePart[], param: string): void {
  const files = parts.map(({ source }) => ({
    byteLength: 'base64' in source ? fileLength(source.base64) : 0,
  }));
  try {
    checkFiles(files, PICTURE_LIMITS);
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    throw new InvalidRequestError(error.message, param, 'invalid_image');
  }
}

/** Bytes that a text in base64 stands for, where it has nothing else in it. */
function fileLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/** @throws InvalidRequestError for a text that is no base64; lines of it are taken */
function fileOf(base64: string, place: string): Uint8Array {
  const text = /\s/.test(base64) ? base64.replaceAll(/\s+/g, '') : base64;
  // Characters that are none of base64 are left out, so that the bytes are fewer.
  const file = Buffer.from(text, 'base64');
  if (file.length > 0 && file.length === fileLength(text)) return file;
  const found = file.length === 0 ? 'is empty' : 'has other characters';
  throw refused(place, `should hold a picture's file in base64, and ${found}.`);
}

/** @param why as the end of a sentence about the place */
export function refused(place: string, why: string): InvalidRequestError {
  return new InvalidRequestError(`'${place}' ${why}`, place, 'invalid_image');
}
