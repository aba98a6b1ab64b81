import type { ConfigFields } from '../../checkpoints/config-fields.js';
import { resized, type Size } from '../resize.js';
import { CLIP_COLOURS, colourSettings } from './colours.js';
import { checkRatio, filterOf, innerFields, MAX_PATCH_SIZE } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

const MAX_PIXELS = 2 ** 24;

/**
 * Qwen2-VL, 2.5-VL, 3-VL and 3.5 (Qwen2VLImageProcessor): both sides become multiples of what makes a token, the ratio stays as nearly
 * as that allows, and the pixels stay between two limits, of which the upper one is that of the tower where it takes fewer patches. A still picture fills all frames of a patch alike.
 */
export function qwenPictures(
  fields: ConfigFields,
  { maxPatches = Number.POSITIVE_INFINITY }: PictureFiles,
): PictureFamily {
  const size = innerFields(fields, 'size');
  const limit = (old: string, key: string, usual: number) =>
    fields.raw(old) !== undefined
      ? fields.integer(old, 1, MAX_PIXELS)
      : size.integer(key, 1, MAX_PIXELS, usual);
  const minPixels = limit('min_pixels', 'shortest_edge', 56 * 56);
  const configured = limit('max_pixels', 'longest_edge', 28 * 28 * 1280);
  const merge = fields.integer('merge_size', 1, 16, 2);
  const patch = fields.integer('patch_size', 1, MAX_PATCH_SIZE, 14);
  const frames = fields.integer('temporal_patch_size', 1, 16, 2);
  const step = patch * merge;
  const filter = filterOf(fields, 3);
  const maxPixels = Math.min(configured, maxPatches * patch ** 2);
  const target = (width: number, height: number) => {
    checkRatio(width, height);
    return smartSize(width, height, step, minPixels, maxPixels);
  };
  return {
    settings: { kind: 'qwen', minPixels, maxPixels, filter },
    layout: { size: patch, merge, frames, byPixel: false },
    colours: colourSettings(fields, CLIP_COLOURS),
    plan(width, height) {
      const to = target(width, height);
      const tokens = (to.width / step) * (to.height / step);
      return { tiles: [to], prompt: [tokens], pixels: to.width * (height + to.height) };
    },
    tiles(pixels) {
      const to = target(pixels.width, pixels.height);
      return [resized(pixels, to.width, to.height, filter, 'torch')];
    },
  };
}

/** transformers' `smart_resize`. */
function smartSize(
  width: number,
  height: number,
  factor: number,
  minPixels: number,
  maxPixels: number,
): Size {
  const near = (side: number) => halfToEven(side / factor) * factor;
  const to = { width: near(width), height: near(height) };
  if (to.width * to.height > maxPixels) {
    const shrink = Math.sqrt((height * width) / maxPixels);
    const down = (side: number) => Math.max(factor, Math.floor(side / shrink / factor) * factor);
    return { width: down(width), height: down(height) };
  }
  if (to.width * to.height < minPixels) {
    const grow = Math.sqrt(minPixels / (height * width));
    const up = (side: number) => Math.ceil((side * grow) / factor) * factor;
    return { width: up(width), height: up(height) };
  }
  return to;
}

/** Python's `round`. */
function halfToEven(value: number): number {
  const whole = Math.floor(value);
  const rest = value - whole;
  return rest > 0.5 || (rest === 0.5 && whole % 2 === 1) ? whole + 1 : whole;
}
