import { ConfigFields } from '../../checkpoints/config-fields.js';
import { resized } from '../resize.js';
import { colourSettings, HALF_COLOURS } from './colours.js';
import { cropped } from './crops.js';
import { towerPatchSize } from './fixed-size.js';
import { ROW_BY_ROW } from './patch-rows.js';
import { filterOf, MAX_CONFIGURED_SIDE, sizeOf } from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

interface Part {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Gemma 3: the picture in one size, and, where the configuration pans and scans, parts of one that is long or high in the same size. */
export function gemma3Pictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const size = sizeOf(fields, 'size', 224);
  const scan = fields.boolean('do_pan_and_scan', false)
    ? {
        least: fields.integer('pan_and_scan_min_crop_size', 1, MAX_CONFIGURED_SIDE, 256),
        most: fields.integer('pan_and_scan_max_num_crops', 1, 16, 4),
        ratio: fields.positive('pan_and_scan_min_ratio_to_activate', 1.2),
      }
    : null;
  const filter = filterOf(fields, 2);
  const config = new ConfigFields('config.json', files.config);
  const tokens = new ConfigFields('processor_config.json', files.processor).integer(
    'image_seq_length',
    1,
    2 ** 20,
    config.integer('mm_tokens_per_image', 1, 2 ** 20, 256),
  );
  const tokenizer = new ConfigFields('tokenizer_config.json', files.tokenizer);
  const begin = `\n\n${tokenizer.string('boi_token') ?? '<start_of_image>'}`;
  const end = `${tokenizer.string('eoi_token') ?? '<end_of_image>'}\n\n`;
  const partsOf = (width: number, height: number) => (scan === null ? [] : panned(width, height, scan));
  return {
    settings: { kind: 'gemma3', size, scan, filter },
    layout: { size: towerPatchSize(files), ...ROW_BY_ROW },
    colours: colourSettings(fields, HALF_COLOURS),
    plan(width, height) {
      const crops = partsOf(width, height).length;
      return {
        tiles: Array.from({ length: 1 + crops }, () => size),
        prompt: promptOf(begin, tokens, end, crops),
        pixels: size.width * (height + size.height * (1 + crops)) + (crops > 0 ? width * height : 0),
      };
    },
    tiles(pixels) {
      const crops = partsOf(pixels.width, pixels.height).map(({ left, top, width, height }) =>
        cropped(pixels, left, top, width, height),
      );
      return [pixels, ...crops].map((one) => resized(one, size.width, size.height, filter, 'torch'));
    },
  };
}

function promptOf(begin: string, tokens: number, end: string, crops: number): (string | number)[] {
  if (crops === 0) return [begin, tokens, end];
  const parts: (string | number)[] = [`Here is the original image ${begin}`, tokens];
  for (let i = 0; i < crops; i++) {
    const between = i === 0 ? ' and here are some crops to help you see better ' : ' ';
    parts.push(`${end}${between}${begin}`, tokens);
  }
  return [...parts, end];
}

/** Parts of equal size along the longer side; none where the picture is nearly square, or the parts would be too small. */
function panned(
  width: number,
  height: number,
  { least, most, ratio }: { least: number; most: number; ratio: number },
): Part[] {
  const isWide = width >= height;
  const long = Math.max(width, height);
  const short = Math.min(width, height);
  if (long / short < ratio) return [];
  const wished = Math.min(Math.floor(long / least), Math.floor(long / short + 0.5));
  const count = Math.min(most, Math.max(2, wished));
  const step = Math.ceil(long / count);
  if (Math.min(step, short) < least) return [];
  return Array.from({ length: count }, (_, i) => {
    const start = step * i;
    const length = Math.min(step, long - start);
    return isWide
      ? { left: start, top: 0, width: length, height }
      : { left: 0, top: start, width, height: length };
  });
}
