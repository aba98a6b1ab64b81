import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../models/checkpoints/file-reading.js';
import type { Pixels } from '../../models/images/resize.js';
import type { ResizeFilter } from '../../models/images/resize-weights.js';

/** What PIL and transformers' image processors make of pictures: see tools/reference/pictures.py. */
export interface PictureGoldens {
  files: { name: string; file: string; width: number; height: number; sha256: string }[];
  resizes: {
    filter: ResizeFilter;
    from: [number, number];
    to: [number, number];
    pil: string;
    torch: string;
  }[];
  processors: {
    name: string;
    imageProcessor: JsonObject;
    /** All fields of the image processor, as transformers writes them. */
    whole: JsonObject;
    config: JsonObject;
    processor: JsonObject;
    tokenizer: JsonObject;
    pictures: {
      size: [number, number];
      rows: [number, number];
      grids: [number, number][];
      /** With a star for each row of the tower's output. */
      text: string;
      first: number[];
      sha256: string;
    }[];
  }[];
}

export function pictureGoldens(): PictureGoldens {
  return JSON.parse(readFileSync(new URL('../goldens/pictures.json', import.meta.url), 'utf8'));
}

/** The formula of tools/reference/pictures.py. */
export function drawnPicture(width: number, height: number): Pixels {
  const bytes = new Uint8Array(width * height * 3);
  let at = 0;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0; c < 3; c++)
        bytes[at++] = x * 37 + y * 59 + c * 83 + ((x * y * 7) >> 4) + ((x >> 3) ^ (y >> 2)) * 29;
  return { width, height, bytes };
}

export function digest(bytes: Uint8Array | Float32Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
