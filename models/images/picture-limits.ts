import { counted } from '../../base/sentences.js';
import { PictureError } from './picture-error.js';

/** What a request's pictures may be. All of it is checked before anything is decoded. */
export interface PictureLimits {
  /** Pictures of a request. */
  maxPictures: number;
  /** Bytes of the files of a request together. */
  maxFileBytes: number;
  /** Pixels of a picture. */
  maxPixels: number;
  /** Pixels of a picture's longer side. */
  maxSide: number;
  /** Milliseconds that a picture may take, from its file to its patches. */
  timeLimitMs: number;
}

export const PICTURE_LIMITS: Readonly<PictureLimits> = {
  maxPictures: 16,
  maxFileBytes: 12e6,
  maxPixels: 16e6,
  maxSide: 16_384,
  timeLimitMs: 10_000,
};

/**
 * Pictures of a conversation that is stored here, those of earlier turns included, which a request does not bring again. Their files have as
 * many bytes as those of any request, and their tokens, which the model's context has to hold, bound what they cost besides.
 */
export const MAX_CONVERSATION_PICTURES = 64;

/** @throws PictureError where there are too many files, or too large ones */
export function checkFiles(files: readonly { byteLength: number }[], limits: PictureLimits): void {
  checkCount(files.length, limits);
  checkBytes(
    files.reduce((sum, { byteLength }) => sum + byteLength, 0),
    limits,
  );
}

/** @throws PictureError for more pictures than a request may have */
export function checkCount(count: number, { maxPictures }: PictureLimits): void {
  if (count <= maxPictures) return;
  throw new PictureError(`The request has ${counted(count, 'picture')}, and may have ${maxPictures}.`);
}

/** @throws PictureError for more pictures than a stored conversation may have, which says what to do */
export function checkConversation(count: number): void {
  if (count <= MAX_CONVERSATION_PICTURES) return;
  throw new PictureError(
    `The conversation has ${counted(count, 'picture')}, those of earlier turns included, and may have ${MAX_CONVERSATION_PICTURES}: delete items that have some, or go on from an earlier response.`,
  );
}

/** @param bytes of the files of a request, as far as they are known @throws PictureError for more than there may be */
export function checkBytes(bytes: number, { maxFileBytes }: PictureLimits): void {
  if (bytes <= maxFileBytes) return;
  throw new PictureError(
    `The files of the request's pictures have ${bytes} bytes together, and may have ${maxFileBytes}.`,
  );
}

/** @throws PictureError for a picture without pixels, or with more than it may have */
export function checkSize(kind: string, width: number, height: number, limits: PictureLimits): void {
  const size = `The ${kind} picture has ${width} x ${height} pixels`;
  if (width < 1 || height < 1) throw new PictureError(`${size}: it is empty.`);
  if (Math.max(width, height) > limits.maxSide)
    throw new PictureError(`${size}, and a side may have ${limits.maxSide}.`);
  if (width * height > limits.maxPixels)
    throw new PictureError(`${size}, which are ${width * height}, and may have ${limits.maxPixels}.`);
}
