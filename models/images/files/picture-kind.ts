import { PictureError } from '../picture-error.js';

/** Kinds of files that are read. */
export type PictureKind = 'JPEG' | 'PNG' | 'WebP' | 'GIF';

/** Media types of the kinds. */
export const PICTURE_TYPES: Readonly<Record<PictureKind, string>> = {
  JPEG: 'image/jpeg',
  PNG: 'image/png',
  WebP: 'image/webp',
  GIF: 'image/gif',
};

/** Beginnings of files, in latin1 where they are no text; `at` the offset, 0 where it is left out. */
interface Beginning<Name extends string = string> {
  name: Name;
  text: string;
  at?: number;
}

const READ: readonly Beginning<PictureKind>[] = [
  { name: 'JPEG', text: '\xff\xd8\xff' },
  { name: 'PNG', text: '\x89PNG\r\n\x1a\n' },
  { name: 'WebP', text: 'WEBP', at: 8 },
  { name: 'GIF', text: 'GIF87a' },
  { name: 'GIF', text: 'GIF89a' },
];

/** Further kinds that clients send; errors name them. */
const REFUSED: readonly Beginning[] = [
  { name: 'a BMP picture', text: 'BM' },
  { name: 'a TIFF picture', text: 'II*\0' },
  { name: 'a TIFF picture', text: 'MM\0*' },
  { name: 'a TIFF picture', text: 'II+\0' },
  { name: 'a TIFF picture', text: 'MM\0+' },
  { name: 'an AVIF picture', text: 'ftypavi', at: 4 },
  { name: 'a HEIC picture', text: 'ftyphei', at: 4 },
  { name: 'a HEIC picture', text: 'ftyphev', at: 4 },
  { name: 'a HEIF picture', text: 'ftypmif1', at: 4 },
  { name: 'a HEIF picture', text: 'ftypmsf1', at: 4 },
  { name: 'a video', text: 'ftyp', at: 4 },
  { name: 'a video', text: '\x1aE\xdf\xa3' },
  { name: 'a JPEG XL picture', text: '\xff\x0a' },
  { name: 'a JPEG XL picture', text: 'JXL ', at: 4 },
  { name: 'a JPEG 2000 picture', text: 'jP  ', at: 4 },
  { name: 'a JPEG 2000 picture', text: '\xff\x4f\xff\x51' },
  { name: 'an icon file', text: '\0\0\x01\0' },
  { name: 'a Photoshop file', text: '8BPS' },
  { name: 'a PDF file', text: '%PDF' },
  { name: 'a PostScript file', text: '%!PS' },
  { name: 'an archive', text: 'PK\x03\x04' },
  { name: 'a compressed file', text: '\x1f\x8b' },
  { name: 'an OpenEXR picture', text: 'v/1\x01' },
  { name: 'a QOI picture', text: 'qoif' },
  { name: 'a picture of the Netpbm family', text: 'P6' },
  { name: 'a data URL, not decoded', text: 'data:' },
  { name: 'base64 text of a JPEG picture, not decoded', text: '/9j/' },
  { name: 'base64 text of a PNG picture, not decoded', text: 'iVBORw0KGgo' },
];

/** Bytes in which text is looked for. */
const TEXT_BYTES = 1024;

/**
 * The kind of a file, by its first bytes alone: no name and no type that a client gives counts. The page reads files by it too, so it needs
 * nothing of Node.js. @throws PictureError
 */
export function pictureKind(bytes: Uint8Array): PictureKind {
  const head = bytes.subarray(0, TEXT_BYTES);
  const latin1 = String.fromCharCode(...head);
  const found = READ.find((one) => begins(latin1, one));
  if (found !== undefined && (found.name !== 'WebP' || latin1.startsWith('RIFF'))) return found.name;
  throw new PictureError(
    `The picture should be a JPEG, PNG, WebP or GIF file, and it is ${foreignKind(head, latin1)}.`,
  );
}

function foreignKind(head: Uint8Array, latin1: string): string {
  if (head.length === 0) return 'empty';
  const known = REFUSED.find((one) => begins(latin1, one));
  if (known !== undefined) return known.name;
  const text = new TextDecoder().decode(head);
  if (/<svg[\s>]/i.test(text)) return 'an SVG drawing';
  if (/^\s*<(!doctype html|html)/i.test(text)) return 'an HTML page';
  if (/^\s*<\?xml/.test(text)) return 'an XML file';
  const bytes = Array.from(head.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0'));
  return `none of those: it begins with the bytes ${bytes.join(' ')}`;
}

const begins = (latin1: string, { text, at = 0 }: Beginning) => latin1.startsWith(text, at);
