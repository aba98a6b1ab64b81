import { PictureError } from '../picture-error.js';
import type { PictureKind } from './picture-kind.js';

/** The error for a file that breaks off or contradicts itself. @param what as the end of a sentence about the file */
export function damaged(kind: PictureKind, what: string): PictureError {
  return new PictureError(`The ${kind} picture cannot be decoded: ${what}.`);
}

/** A view that reads numbers of a file; `byteLength` has to be looked at before. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
