import { CHANNELS, type Pixels } from '../resize.js';
import { damaged, viewOf } from './damaged.js';
import { unpackedColours } from './gif-codes.js';
import { GIF_HEADER_BYTES, gifHeader } from './gif-header.js';

const IMAGE = 0x2c;
const EXTENSION = 0x21;
const GRAPHIC_CONTROL = 0xf9;
const WHITE = 255;

/** Each fourth row of eight, and so on: where a pass over an interlaced frame begins, and its step. */
const PASSES = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const;

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  interlaced: boolean;
  /** Red, green and blue of each colour. */
  palette: Uint8Array;
  /** Number of the colour that stands for nothing, or -1. */
  transparent: number;
  /** Where its codes begin. */
  at: number;
}

/**
 * The first frame of a GIF, as PIL has it: what is transparent is white, and what the frame does not cover has its transparent colour, or
 * the first of its palette. It is unpacked here, since libvips gives the pixels outside of the frame other colours, and no error for a
 * frame that breaks off. @throws PictureError
 */
export function gifPicture(bytes: Uint8Array): Pixels {
  const { width, height } = gifHeader(bytes);
  const frame = firstFrame(bytes);
  if (frame.left + frame.width > width || frame.top + frame.height > height)
    throw damaged('GIF', 'its first frame is larger than the picture');
  const bits = bytes[frame.at]!;
  if (!(bits >= 1 && bits <= 8)) throw damaged('GIF', `its colour numbers have ${bits} bits`);
  const colours = unpackedColours(contentOf(bytes, frame.at + 1), bits, frame.width * frame.height);
  const canvas = new Uint8Array(width * height).fill(Math.max(0, frame.transparent));
  rowsOf(frame).forEach((y, i) => {
    const row = colours.subarray(i * frame.width, (i + 1) * frame.width);
    canvas.set(row, (frame.top + y) * width + frame.left);
  });
  return { width, height, bytes: inColour(canvas, frame) };
}

/** Rows of a frame in the order in which they are packed. */
function rowsOf({ height, interlaced }: Frame): number[] {
  if (!interlaced) return Array.from({ length: height }, (_, y) => y);
  return PASSES.flatMap(([first, step]) => {
    const rows: number[] = [];
    for (let y = first; y < height; y += step) rows.push(y);
    return rows;
  });
}

function inColour(canvas: Uint8Array, { palette, transparent }: Frame): Uint8Array {
  const result = new Uint8Array(canvas.length * CHANNELS);
  canvas.forEach((colour, i) => {
    for (let c = 0; c < CHANNELS; c++)
      result[i * CHANNELS + c] = colour === transparent ? WHITE : palette[colour * CHANNELS + c]!;
  });
  return result;
}

function firstFrame(bytes: Uint8Array): Frame {
  const view = viewOf(bytes);
  const global = paletteAt(bytes, GIF_HEADER_BYTES, bytes[10]!);
  let at = global.end;
  let transparent = -1;
  for (;;) {
    const block = bytes[at];
    if (block === IMAGE && at + 10 < bytes.length) break;
    if (block !== EXTENSION) throw damaged('GIF', 'it has no frame');
    if (bytes[at + 1] === GRAPHIC_CONTROL && bytes[at + 2]! >= 4)
      transparent = bytes[at + 3]! & 1 ? (bytes[at + 6] ?? -1) : -1;
    at = beyondBlocks(bytes, at + 2);
  }
  const flags = bytes[at + 9]!;
  const side = (offset: number) => view.getUint16(at + offset, true);
  const local = paletteAt(bytes, at + 10, flags);
  return {
    ...{ left: side(1), top: side(3), width: side(5), height: side(7) },
    interlaced: (flags & 0x40) !== 0,
    palette: local.colours ?? global.colours ?? greys(),
    transparent,
    at: local.end,
  };
}

function paletteAt(
  bytes: Uint8Array,
  at: number,
  flags: number,
): { colours: Uint8Array | null; end: number } {
  if ((flags & 0x80) === 0) return { colours: null, end: at };
  const length = CHANNELS * 2 ** ((flags & 7) + 1);
  if (at + length > bytes.length) throw damaged('GIF', 'it breaks off in a palette');
  // Colours beyond the palette are black.
  const colours = new Uint8Array(256 * CHANNELS);
  colours.set(bytes.subarray(at, at + length));
  return { colours, end: at + length };
}

/** Without any palette a number is its own grey. */
function greys(): Uint8Array {
  return Uint8Array.from({ length: 256 * CHANNELS }, (_, i) => Math.floor(i / CHANNELS));
}

/** What the blocks from a place on hold, up to an empty one. */
function contentOf(bytes: Uint8Array, from: number): Uint8Array {
  const content = new Uint8Array(Math.max(0, bytes.length - from));
  let filled = 0;
  for (let at = from; at < bytes.length && bytes[at] !== 0; at += 1 + bytes[at]!) {
    const block = bytes.subarray(at + 1, at + 1 + bytes[at]!);
    content.set(block, filled);
    filled += block.length;
  }
  return content.subarray(0, filled);
}

/** The place beyond the blocks from a place on. */
function beyondBlocks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== 0) at += 1 + bytes[at]!;
  return at + 1;
}
