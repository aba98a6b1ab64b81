import { CHANNELS, type Pixels, type Size } from '../resize.js';

/** Patches of a tile, row by row. */
export interface PatchGrid {
  rows: number;
  columns: number;
}

/** The order of patches, and of the numbers in one. */
export interface PatchLayout {
  /** Pixels of a patch's side. */
  size: number;
  /** Patches of the side of a square whose patches stand together; 1: patches stand row by row. */
  merge: number;
  /** How often a channel's numbers stand in a patch: for each of that many frames, which a still picture fills alike. */
  frames: number;
  /** Numbers by pixel, with the channels of each together, instead of by channel. */
  byPixel: boolean;
}

export const ROW_BY_ROW = { merge: 1, frames: 1, byPixel: false } as const;

/** Patches of a picture whose sides are multiples of the patches'; what is over at its right and bottom is left out. */
export function patchGrid({ width, height }: Size, size: number): PatchGrid {
  return { rows: Math.floor(height / size), columns: Math.floor(width / size) };
}

/** Numbers of a patch. */
export function patchWidth({ size, frames }: PatchLayout): number {
  return CHANNELS * frames * size * size;
}

/**
 * Puts a picture's patches into rows from one on, each byte as its channel's number in the table. Yields after each row of squares
 * with the row after it.
 */
export function* putPatches(
  pixels: Pixels,
  layout: PatchLayout,
  table: Float32Array,
  rows: Float32Array,
  from: number,
): Generator<number> {
  const grid = patchGrid(pixels, layout.size);
  const width = patchWidth(layout);
  let row = from;
  for (let y = 0; y < grid.rows; y += layout.merge) {
    for (let x = 0; x < grid.columns; x += layout.merge)
      for (let i = 0; i < layout.merge; i++)
        for (let j = 0; j < layout.merge; j++) {
          putPatch(pixels, x + j, y + i, layout, table, rows, row * width);
          row++;
        }
    yield row;
  }
}

function putPatch(
  { width, bytes }: Pixels,
  column: number,
  row: number,
  { size, frames, byPixel }: PatchLayout,
  table: Float32Array,
  rows: Float32Array,
  at: number,
): void {
  const area = size * size;
  const pixelStep = byPixel ? CHANNELS : 1;
  for (let c = 0; c < CHANNELS; c++) {
    const start = byPixel ? at + c : at + c * frames * area;
    const values = c * 256;
    let to = start;
    for (let y = 0; y < size; y++) {
      let from = ((row * size + y) * width + column * size) * CHANNELS + c;
      for (let x = 0; x < size; x++) {
        rows[to] = table[values + bytes[from]!]!;
        to += pixelStep;
        from += CHANNELS;
      }
    }
    for (let frame = 1; frame < frames; frame++) rows.copyWithin(start + frame * area, start, start + area);
  }
}
