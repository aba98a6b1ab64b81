import { damaged, viewOf } from './damaged.js';
import { exifOrientation } from './exif-orientation.js';

/** Beginning of a file, before its chunks. */
const SIGNATURE_BYTES = 8;
/** A chunk's length, type and checksum. */
const CHUNK_FRAME = 12;
/**
 * Chunks that are decoded: those of the picture itself. All others (texts, colour profiles, frames of an animation) are
 * left out before the decoder sees the file, since they may unpack to any size.
 */
const KEPT = new Set(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND']);
/** A colour type's channels, and the bits that their samples may have. */
const COLOUR_TYPES = new Map<number, { channels: number; bits: readonly number[] }>([
  [0, { channels: 1, bits: [1, 2, 4, 8, 16] }],
  [2, { channels: 3, bits: [8, 16] }],
  [3, { channels: 1, bits: [1, 2, 4, 8] }],
  [4, { channels: 2, bits: [8, 16] }],
  [6, { channels: 4, bits: [8, 16] }],
]);
/** Most chunks of a file: one of 12 MB has 1500 of the usual 8 kB. */
const MAX_CHUNKS = 65_536;
const GREY = 0;
const RGB = 2;
const PALETTE = 3;

interface Chunk {
  type: string;
  /** Where its length stands. */
  at: number;
  length: number;
}

/** Size of a PNG picture, by its first chunk, and its orientation. */
export function pngHeader(bytes: Uint8Array) {
  const view = viewOf(bytes);
  const chunks = chunksOf(view);
  const { width, height, bits, channels } = imageHeader(view, chunks);
  const exif = chunks.find(({ type }) => type === 'eXIf');
  const orientation = exifOrientation(exif ? bytes.subarray(exif.at + 8, exif.at + 8 + exif.length) : null);
  return { width, height, decodedBytes: (channels + 1) * (bits === 16 ? 2 : 1), orientation };
}

/** A PNG file that is ready to be decoded. */
export interface PlainPng {
  bytes: Uint8Array;
  /**
   * The colour that stands for nothing, as the red, green and blue bytes of a decoded pixel; null where there is none. A palette's
   * transparency stays in the file.
   */
  hole: readonly [number, number, number] | null;
}

/**
 * The file with the chunks that are decoded. The transparent colour of a picture without palette is taken out of it, and compared as PIL
 * does, with bytes as it decodes them: a colour of fewer or more bits than 8 is hardly ever found.
 */
export function plainPng(bytes: Uint8Array): PlainPng {
  const view = viewOf(bytes);
  const chunks = chunksOf(view);
  const { bits, colour } = imageHeader(view, chunks);
  const hole = chunks.find(({ type }) => type === 'tRNS');
  const kept = chunks.filter(({ type }) => KEPT.has(type) && (type !== 'tRNS' || colour === PALETTE));
  const parts = kept.map(({ at, length }) => bytes.subarray(at, at + CHUNK_FRAME + length));
  return {
    bytes: Buffer.concat([bytes.subarray(0, SIGNATURE_BYTES), ...parts]),
    hole: hole === undefined ? null : holeOf(view, hole, colour, bits),
  };
}

function holeOf(view: DataView, { at, length }: Chunk, colour: number, bits: number): PlainPng['hole'] {
  const sample = (i: number) => view.getUint16(at + 8 + 2 * i);
  if (colour === RGB && length >= 6) return [sample(0), sample(1), sample(2)];
  if (colour !== GREY || length < 2) return null;
  const grey = bits === 1 ? sample(0) && 255 : sample(0);
  return [grey, grey, grey];
}

function imageHeader(view: DataView, [first]: readonly Chunk[]) {
  if (first?.type !== 'IHDR' || first.length !== 13)
    throw damaged('PNG', 'it does not begin with its header');
  const at = first.at + 8;
  const bits = view.getUint8(at + 8);
  const colour = view.getUint8(at + 9);
  const type = COLOUR_TYPES.get(colour);
  if (!type?.bits.includes(bits)) throw damaged('PNG', `it has colours of type ${colour} and ${bits} bits`);
  return { width: view.getUint32(at), height: view.getUint32(at + 4), bits, colour, channels: type.channels };
}

/** All chunks up to the end of the picture. */
function chunksOf(view: DataView): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = SIGNATURE_BYTES; at < view.byteLength; ) {
    if (at + CHUNK_FRAME > view.byteLength) throw damaged('PNG', 'it breaks off in a chunk');
    const length = view.getUint32(at);
    const type = String.fromCharCode(...[4, 5, 6, 7].map((i) => view.getUint8(at + i)));
    if (at + CHUNK_FRAME + length > view.byteLength) throw damaged('PNG', 'it breaks off in a chunk');
    if (chunks.length === MAX_CHUNKS) throw damaged('PNG', `it has more than ${MAX_CHUNKS} chunks`);
    chunks.push({ type, at, length });
    if (type === 'IEND') return chunks;
    at += CHUNK_FRAME + length;
  }
  throw damaged('PNG', 'it has no end');
}
