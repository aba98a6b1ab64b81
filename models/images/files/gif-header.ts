import { damaged, viewOf } from './damaged.js';

/** Signature, size, flags, background and aspect. */
export const GIF_HEADER_BYTES = 13;

/** Size of a GIF picture: of all frames. It has no EXIF. */
export function gifHeader(bytes: Uint8Array) {
  if (bytes.length < GIF_HEADER_BYTES) throw damaged('GIF', 'it breaks off in its header');
  const view = viewOf(bytes);
  return {
    width: view.getUint16(6, true),
    height: view.getUint16(8, true),
    decodedBytes: 1,
    orientation: 1 as const,
  };
}
