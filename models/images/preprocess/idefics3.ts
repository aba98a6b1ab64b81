import { ConfigFields } from '../../checkpoints/config-fields.js';
import { type Pixels, resized, type Size } from '../resize.js';
import { colourSettings, HALF_COLOURS } from './colours.js';
import { cropped } from './crops.js';
import { ROW_BY_ROW } from './patch-rows.js';
import { filterOf, innerFields, MAX_CONFIGURED_SIDE, MAX_PATCH_SIZE } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

/** Pixels of a side that no picture has more of, whatever the configuration says. */
const MAX_SIDE = 4096;
/** Most tiles of a side: the models that are known have 4. */
const MAX_TILES_OF_SIDE = 16;
const FAKE = '<fake_token_around_image>';
const GLOBAL = '<global-img>';

/**
 * SmolVLM and Idefics3: the longer side gets a given length, both become multiples of a tile's side, and the tiles stand row by row before
 * the whole picture, made as small as a tile.
 */
export function idefics3Pictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const longest = innerFields(fields, 'size').integer('longest_edge', 1, MAX_CONFIGURED_SIDE, 4 * 364);
  const leastTile = Math.ceil(longest / MAX_TILES_OF_SIDE);
  const tile = innerFields(fields, 'max_image_size').integer(
    'longest_edge',
    leastTile,
    MAX_CONFIGURED_SIDE,
    364,
  );
  const splits = fields.boolean('do_image_splitting', true);
  const config = new ConfigFields('config.json', files.config);
  const patch = innerFields(config, 'vision_config').integer('patch_size', 1, MAX_PATCH_SIZE, 32);
  const shuffle = config.integer('scale_factor', 1, 64, 2);
  const usualTokens = Math.floor(Math.floor(tile / patch) ** 2 / shuffle ** 2);
  const processor = new ConfigFields('processor_config.json', files.processor);
  const tokens = processor.integer('image_seq_len', 1, 2 ** 20, usualTokens);
  const filter = filterOf(fields, 1);
  const split = (width: number, height: number) => {
    const first = longestSide(width, height, longest);
    const second = splits ? multiples(first, tile) : { width: tile, height: tile };
    return { first, second, columns: second.width / tile, rows: second.height / tile };
  };
  return {
    settings: { kind: 'idefics3', longest, tile, splits, filter },
    layout: { size: patch, ...ROW_BY_ROW },
    colours: colourSettings(fields, HALF_COLOURS),
    plan(width, height) {
      const { first, second, rows, columns } = split(width, height);
      const count = rows * columns === 1 ? 1 : rows * columns + 1;
      const steps = first.width * (height + first.height) + second.width * (first.height + second.height);
      return {
        tiles: Array.from({ length: count }, () => ({ width: tile, height: tile })),
        prompt: promptOf(rows, columns, tokens),
        pixels: steps + tile * second.height + count * tile * tile,
      };
    },
    tiles(pixels) {
      const { first, second, rows, columns } = split(pixels.width, pixels.height);
      const step = resized(pixels, first.width, first.height, filter, 'torch');
      const picture = resized(step, second.width, second.height, filter, 'torch');
      const parts: Pixels[] = [];
      if (rows * columns > 1)
        for (let y = 0; y < rows; y++)
          for (let x = 0; x < columns; x++) parts.push(cropped(picture, x * tile, y * tile, tile, tile));
      return [...parts, resized(picture, tile, tile, filter, 'torch')];
    },
  };
}

/** Tiles with the names of their rows and columns, then the whole picture. */
function promptOf(rows: number, columns: number, tokens: number): (string | number)[] {
  const whole = [`${FAKE}${GLOBAL}`, tokens, FAKE];
  if (rows * columns === 1) return whole;
  const parts: (string | number)[] = [];
  for (let row = 1; row <= rows; row++) {
    for (let column = 1; column <= columns; column++) parts.push(`${FAKE}<row_${row}_col_${column}>`, tokens);
    parts.push('\n');
  }
  return joined([...parts, '\n', ...whole]);
}

/** Joins adjacent texts into one. */
function joined(parts: readonly (string | number)[]): (string | number)[] {
  const result: (string | number)[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (typeof part === 'string' && typeof last === 'string') result[result.length - 1] = last + part;
    else result.push(part);
  }
  return result;
}

/** The longer side as given, the other one even, and neither beyond what any picture has. */
function longestSide(width: number, height: number, longest: number): Size {
  const ratio = width / height;
  const even = (side: number) => Math.max(1, side + (side % 2));
  const size =
    width >= height
      ? { width: longest, height: even(Math.trunc(longest / ratio)) }
      : { width: even(Math.trunc(longest * ratio)), height: longest };
  const again = size.width / size.height;
  if (size.width >= size.height && size.width > MAX_SIDE)
    return { width: MAX_SIDE, height: Math.max(1, Math.trunc(MAX_SIDE / again)) };
  if (size.height > size.width && size.height > MAX_SIDE)
    return { width: Math.max(1, Math.trunc(MAX_SIDE * again)), height: MAX_SIDE };
  return size;
}

/** Both sides as multiples of a tile's, of which the shorter one follows the longer one. */
function multiples({ width, height }: Size, tile: number): Size {
  const up = (side: number) => Math.ceil(side / tile) * tile;
  const ratio = width / height;
  if (width >= height) return { width: up(width), height: up(Math.trunc(up(width) / ratio)) };
  return { width: up(Math.trunc(up(height) * ratio)), height: up(height) };
}
