import { PictureError } from '../../../models/images/picture-error.js';
import {
  checkBytes,
  checkConversation,
  checkCount,
  PICTURE_LIMITS,
} from '../../../models/images/picture-limits.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { fileLength, fileOfBase64 } from './base64-file.js';
import type { PicturePart } from './picture-part.js';

/** A picture's file that a request only names, and where it does. */
export interface NamedFile {
  /** Its address, or its id. */
  name: string;
  place: string;
}

/** How files are loaded that a request only names. */
export interface FileLoading {
  /** Counts bytes before they are taken. @throws InvalidRequestError for more than a request may have; what is in the way */
  take(bytes: number): void;
  /** Ends the wait. */
  signal: AbortSignal | undefined;
}

type Way = (files: readonly NamedFile[], loading: FileLoading) => Promise<Uint8Array[]>;

/** Ways to the files of pictures that a request only names, in their order. One that is absent is closed. */
export interface PictureSources {
  /** At addresses. @throws InvalidRequestError for an address that is refused, or for another obstacle */
  fetched?: Way | undefined;
  /** Stored by the request's caller. @throws the same */
  stored?: Way | undefined;
}

/** What is loaded for a request. */
export interface FilesOptions {
  sources: PictureSources;
  signal: AbortSignal | undefined;
  /** Called with bytes before they are taken that are no part of the request; may throw. */
  hold: ((bytes: number) => void) | undefined;
  /** Name of the field with all pictures. */
  param: string;
}

const NONE_FETCHED = (url: string) =>
  /^https:/i.test(url)
    ? NOT_ALLOWED
    : 'is the address of a picture that is not https:, and no other is fetched: send its bytes in a data: URL.';
const NOT_ALLOWED =
  'is the address of a picture, and none is fetched here: send its bytes in a data: URL, or start the server with --allow-image-urls (Skein.load with allowImageUrls).';
const NONE_STORED = () => 'names a stored file, and there are none here: send its bytes in a data: URL.';

/**
 * The files of a request's pictures, in their order. Their number, and the bytes that are known, are looked at before one is loaded.
 * @throws InvalidRequestError where they are too many or too large, or one is not there; what `hold` and the sources throw
 */
export async function filesOf(
  parts: readonly PicturePart[],
  { sources, signal, hold, param }: FilesOptions,
): Promise<Uint8Array[]> {
  let total = 0;
  const count = (bytes: number) => {
    total += bytes;
    inRequestsWords(param, () => checkBytes(total, PICTURE_LIMITS));
  };
  inRequestsWords(param, () => {
    checkConversation(parts.length);
    checkCount(parts.filter(isBrought).length, PICTURE_LIMITS);
  });
  for (const { source } of parts) {
    if ('base64' in source) count(fileLength(source.base64));
    if ('file' in source) count(source.file.length);
  }
  const take = (bytes: number) => {
    count(bytes);
    hold?.(bytes);
  };
  const files = new Map<PicturePart, Uint8Array>();
  const load = async (
    nameOf: (part: PicturePart) => string | null,
    way: Way | undefined,
    closed: (name: string) => string,
  ) => {
    const named = parts.flatMap((part) => {
      const name = nameOf(part);
      return name === null ? [] : [{ name, place: part.place, part }];
    });
    const [first] = named;
    if (first === undefined) return;
    if (way === undefined) throw refused(first.place, closed(first.name));
    const loaded = await way(named, { take, signal });
    for (const [i, { part }] of named.entries()) files.set(part, loaded[i]!);
  };
  await load(({ source }) => ('fileId' in source ? source.fileId : null), sources.stored, NONE_STORED);
  await load(({ source }) => ('url' in source ? source.url : null), sources.fetched, NONE_FETCHED);
  const all: Uint8Array[] = [];
  for (const part of parts) {
    const { source, place } = part;
    if ('base64' in source) all.push(await fileOf(source.base64, place));
    else all.push('file' in source ? source.file : files.get(part)!);
  }
  return all;
}

/** Not stored here with an earlier turn. One at an address is fetched again, as one that the request brings. */
const isBrought = ({ isEarlier = false, source }: PicturePart) => !isEarlier || 'url' in source;

function inRequestsWords(param: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    throw new InvalidRequestError(error.message, param, 'invalid_image');
  }
}

/** @throws InvalidRequestError for a text that is no base64 */
async function fileOf(base64: string, place: string): Promise<Uint8Array> {
  const file = await fileOfBase64(base64);
  if (typeof file !== 'string') return file;
  throw refused(place, `should hold a picture's file in base64, and ${file}.`);
}

/** @param why as the end of a sentence about the place */
export function refused(place: string, why: string): InvalidRequestError {
  return new InvalidRequestError(`'${place}' ${why}`, place, 'invalid_image');
}
