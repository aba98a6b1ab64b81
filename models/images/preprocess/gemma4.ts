import { ConfigFields } from '../../checkpoints/config-fields.js';
import { PictureError } from '../picture-error.js';
import { resized } from '../resize.js';
import { colourSettings, PLAIN_COLOURS } from './colours.js';

import { filterOf, MAX_PATCH_SIZE } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

/** Most tokens of a picture that a configuration can name. */
const TOKENS = [70, 140, 280, 560, 1120];

/**
 * Gemma 4: the largest picture of the same ratio whose patches are within a limit and whose sides are multiples of what makes a token. A
 * patch has its numbers by pixel. transformers adds empty patches up to the limit, which are left out here.
 */
export function gemma4Pictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const maxTokens = fields.integer('max_soft_tokens', 1, 1120, 280);
  if (!TOKENS.includes(maxTokens)) throw fields.error('max_soft_tokens', `one of ${TOKENS.join(', ')}`);
  const pool = fields.integer('pooling_kernel_size', 1, 16, 3);
  const patch = fields.integer('patch_size', 1, MAX_PATCH_SIZE, 16);
  const filter = filterOf(fields, 3);
  const tokenizer = new ConfigFields('tokenizer_config.json', files.tokenizer);
  const textOf = (key: string) => {
    const text = tokenizer.string(key);
    if (text === undefined) throw tokenizer.error(key, 'the text of a token');
    return text;
  };
  const [begin, end] = [textOf('boi_token'), textOf('eoi_token')];
  const target = (width: number, height: number) =>
    budgetSize(width, height, patch, pool, maxTokens * pool * pool);
  return {
    settings: { kind: 'gemma4', maxTokens, pool, filter },
    layout: { size: patch, merge: 1, frames: 1, byPixel: true },
    colours: colourSettings(fields, PLAIN_COLOURS, false),
    plan(width, height) {
      const to = target(width, height);
      const tokens = (to.width / patch / pool) * (to.height / patch / pool);
      return { tiles: [to], prompt: [begin, tokens, end], pixels: to.width * (height + to.height) };
    },
    tiles(pixels) {
      const to = target(pixels.width, pixels.height);
      return [resized(pixels, to.width, to.height, filter, 'torch')];
    },
  };
}

/** transformers' `get_aspect_ratio_preserving_size`. */
function budgetSize(width: number, height: number, patch: number, pool: number, maxPatches: number) {
  const step = pool * patch;
  const pixels = maxPatches * patch ** 2;
  const factor = Math.sqrt(pixels / (width * height));
  const down = (side: number) => Math.floor((factor * side) / step) * step;
  const longest = Math.floor(maxPatches / pool ** 2) * step;
  const along = (long: number, short: number) => Math.min(Math.floor(long / short) * step, longest);
  let to = { width: down(width), height: down(height) };
  if (to.width === 0 && to.height === 0)
    throw new PictureError(`A picture of ${width} x ${height} pixels leaves no patch.`);
  if (to.height === 0) to = { width: along(width, height), height: step };
  else if (to.width === 0) to = { width: step, height: along(height, width) };
  if (to.width * to.height > pixels)
    throw new PictureError(
      `A picture of ${width} x ${height} pixels becomes more than ${maxPatches} patches.`,
    );
  return to;
}
