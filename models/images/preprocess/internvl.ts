import { ConfigFields } from '../../checkpoints/config-fields.js';
import { isObject } from '../../checkpoints/file-reading.js';
import { type Pixels, resized, type Size } from '../resize.js';
import { CLIP_COLOURS, colourSettings } from './colours.js';
import { cropped } from './crops.js';
import { towerPatchSize } from './fixed-size.js';
import { ROW_BY_ROW } from './patch-rows.js';
import { filterOf, sizeOf } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

/** Most tiles that a configuration may ask for: the models that are known have 12. */
const MAX_TILES = 64;

/** Tiles of a picture, in columns and rows. */
interface TileGrid {
  columns: number;
  rows: number;
}

/**
 * InternVL (GotOcr2ImageProcessor, which its processor always lets cut tiles): the grid of tiles whose ratio is nearest to the picture's,
 * row by row, then the whole picture in the size of a tile where there are several.
 */
export function internVlPictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const tile = sizeOf(fields, 'size', 384);
  const most = fields.integer('max_patches', 1, MAX_TILES, 12);
  const least = fields.integer('min_patches', 1, most, 1);
  const filter = filterOf(fields, 3);
  const patch = towerPatchSize(files);
  const usual = new ConfigFields('config.json', files.config).integer('image_seq_length', 1, 2 ** 20, 256);
  const processor = new ConfigFields('processor_config.json', files.processor);
  const tokens = processor.integer('image_seq_length', 1, 2 ** 20, usual);
  const [begin, end] = [
    tokenText(files, 'start_image_token', '<img>'),
    tokenText(files, 'end_image_token', '</img>'),
  ];
  const grids = tileGrids(least, most);
  return {
    settings: { kind: 'internvl', tile, least, most, filter },
    layout: { size: patch, ...ROW_BY_ROW },
    colours: colourSettings(fields, CLIP_COLOURS),
    plan(width, height) {
      const { columns, rows } = nearest(grids, { width, height }, tile);
      const count = rows * columns === 1 ? 1 : rows * columns + 1;
      const whole = { width: columns * tile.width, height: rows * tile.height };
      const steps = whole.width * (height + whole.height) + tile.width * height;
      return {
        tiles: Array.from({ length: count }, () => tile),
        prompt: [begin, tokens * count, end],
        pixels: steps + count * tile.width * tile.height,
      };
    },
    tiles(pixels) {
      const { columns, rows } = nearest(grids, pixels, tile);
      const whole = resized(pixels, columns * tile.width, rows * tile.height, filter, 'torch');
      if (rows * columns === 1) return [whole];
      const parts: Pixels[] = [];
      for (let y = 0; y < rows; y++)
        for (let x = 0; x < columns; x++)
          parts.push(cropped(whole, x * tile.width, y * tile.height, tile.width, tile.height));
      return [...parts, resized(pixels, tile.width, tile.height, filter, 'torch')];
    },
  };
}

/** Text of a token that tokenizer_config.json names, among its own fields or its further tokens. */
function tokenText({ tokenizer }: PictureFiles, key: string, usual: string): string {
  const { extra_special_tokens: more } = tokenizer;
  const inner = new ConfigFields('tokenizer_config.json: extra_special_tokens', isObject(more) ? more : {});
  return new ConfigFields('tokenizer_config.json', tokenizer).string(key) ?? inner.string(key) ?? usual;
}

/** All grids of `least` to `most` tiles, by their number of tiles, then by columns. */
function tileGrids(least: number, most: number): TileGrid[] {
  const grids: TileGrid[] = [];
  for (let columns = 1; columns <= most; columns++)
    for (let rows = 1; rows * columns <= most; rows++)
      if (rows * columns >= least) grids.push({ columns, rows });
  return grids.sort((one, other) => one.columns * one.rows - other.columns * other.rows);
}

/**
 * transformers' `get_optimal_tiled_canvas`: of grids whose ratios are equally near, the one with more tiles, as long as the picture has more
 * than half of their pixels.
 */
function nearest(grids: readonly TileGrid[], { width, height }: Size, tile: Size): TileGrid {
  let best: TileGrid = { columns: 1, rows: 1 };
  let least = Number.POSITIVE_INFINITY;
  for (const grid of grids) {
    const distance = Math.abs(width / height - grid.columns / grid.rows);
    const isLarge = width * height > 0.5 * tile.height * tile.width * grid.columns * grid.rows;
    if (distance < least || (distance === least && isLarge)) best = grid;
    least = Math.min(least, distance);
  }
  return best;
}
