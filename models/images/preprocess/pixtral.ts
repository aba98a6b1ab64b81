import { ConfigFields } from '../../checkpoints/config-fields.js';
import { PictureError } from '../picture-error.js';
import { resized } from '../resize.js';
import { CLIP_COLOURS, colourSettings } from './colours.js';
import { towerPatchSize } from './fixed-size.js';
import { ROW_BY_ROW } from './patch-rows.js';
import { filterOf, innerFields, MAX_CONFIGURED_SIDE } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

/**
 * Pixtral, also in Mistral Small 3: a picture that is too large is made smaller, and both sides become multiples of what makes a token. Each
 * row of tokens ends with a token of its own, the last one with another.
 */
export function pixtralPictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const configured = innerFields(fields, 'size').integer('longest_edge', 1, MAX_CONFIGURED_SIDE, 1024);
  const processor = new ConfigFields('processor_config.json', files.processor);
  const config = new ConfigFields('config.json', files.config);
  const merge = processor.integer(
    'spatial_merge_size',
    1,
    16,
    config.integer('spatial_merge_size', 1, 16, 1),
  );
  const patch = towerPatchSize(files);
  const step = patch * merge;
  // A side with which even a square has no more patches than the tower takes.
  const { maxPatches = Number.POSITIVE_INFINITY } = files;
  const longest = Math.min(configured, step * Math.floor(Math.sqrt(maxPatches) / merge));
  const filter = filterOf(fields, 3);
  const lineEnd = processor.string('image_break_token') ?? '[IMG_BREAK]';
  const end = processor.string('image_end_token') ?? '[IMG_END]';
  const target = (width: number, height: number) => {
    const ratio = Math.max(height / longest, width / longest);
    const within = (side: number) => (ratio > 1 ? Math.floor(side / ratio) : side);
    const up = (side: number) => (Math.floor((side - 1) / step) + 1) * step;
    const to = { width: up(within(width)), height: up(within(height)) };
    if (to.width === 0 || to.height === 0)
      throw new PictureError(`A picture of ${width} x ${height} pixels leaves no patch.`);
    return to;
  };
  return {
    settings: { kind: 'pixtral', longest, merge, filter },
    layout: { size: patch, ...ROW_BY_ROW },
    colours: colourSettings(fields, CLIP_COLOURS),
    plan(width, height) {
      const to = target(width, height);
      const lines = to.height / step;
      const line = (i: number) => [to.width / step, i < lines - 1 ? lineEnd : end];
      return {
        tiles: [to],
        prompt: Array.from({ length: lines }, (_, i) => line(i)).flat(),
        pixels: to.width * (height + to.height),
      };
    },
    tiles(pixels) {
      const to = target(pixels.width, pixels.height);
      return [resized(pixels, to.width, to.height, filter, 'torch')];
    },
  };
}
