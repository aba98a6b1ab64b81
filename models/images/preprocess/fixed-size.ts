import { ConfigFields } from '../../checkpoints/config-fields.js';
import { isObject } from '../../checkpoints/file-reading.js';
import { squareSide } from '../../checkpoints/square-side.js';
import { resized, type Size } from '../resize.js';
import { CLIP_COLOURS, colourSettings, HALF_COLOURS } from './colours.js';
import { centerCropped, placed } from './crops.js';
import { patchGrid, ROW_BY_ROW } from './patch-rows.js';
import {
  checkRatio,
  filterOf,
  innerFields,
  MAX_CONFIGURED_SIDE,
  MAX_PATCH_SIZE,
  sizeOf,
} from './picture-fields.js';
import type { PictureFamily, PictureFiles } from './picture-preprocessor.js';

/** Patch size of a tower in config.json, of which a tower alone is all. */
export function towerPatchSize(files: PictureFiles): number {
  const config = new ConfigFields('config.json', files.config);
  const tower = isObject(config.raw('vision_config')) ? innerFields(config, 'vision_config') : config;
  return squareSide(tower, 'patch_size', MAX_PATCH_SIZE);
}

/** SigLIP, alone: the picture in one size, whatever its ratio. No text goes with it. */
export function siglipPictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  return fixedPictures(fields, {
    kind: 'siglip',
    patchSize: towerPatchSize(files),
    usual: HALF_COLOURS,
    exact: sizeOf(fields, 'size', 224),
    pads: false,
    prompt: () => [],
  });
}

/** CLIP, alone: the shorter side gets a given length, and the middle is kept. No text goes with it. */
export function clipPictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  return fixedPictures(fields, {
    kind: 'clip',
    patchSize: towerPatchSize(files),
    usual: CLIP_COLOURS,
    exact: exactSize(fields),
    pads: false,
    prompt: () => [],
  });
}

/** LLaVA: as CLIP; where the configuration says so, the picture is made square before, on a ground of the mean colour. */
export function llavaPictures(fields: ConfigFields, files: PictureFiles): PictureFamily {
  const processor = new ConfigFields('processor_config.json', files.processor);
  const config = new ConfigFields('config.json', files.config);
  const kept = 'vision_feature_select_strategy';
  const strategy = processor.string(kept);
  // The tower's output has a row for the class before the patches, which most models leave out.
  const classRow = config.string(kept) === 'full' ? 1 : 0;
  const extra =
    strategy === undefined
      ? classRow
      : processor.integer('num_additional_image_tokens', 0, 64, 0) - (strategy === 'default' ? 1 : 0);
  return fixedPictures(fields, {
    kind: 'llava',
    patchSize: towerPatchSize(files),
    usual: CLIP_COLOURS,
    exact: exactSize(fields),
    pads: fields.boolean('do_pad', false),
    prompt: (patches) => [patches + extra],
  });
}

/** The size that a picture gets whatever its ratio, where the configuration names one. */
function exactSize(fields: ConfigFields): { width: number; height: number } | null {
  const size = fields.raw('size');
  return isObject(size) && 'height' in size ? sizeOf(fields, 'size', 224) : null;
}

function shortestSide(fields: ConfigFields): number {
  return isObject(fields.raw('size'))
    ? innerFields(fields, 'size').integer('shortest_edge', 1, MAX_CONFIGURED_SIDE)
    : fields.integer('size', 1, MAX_CONFIGURED_SIDE, 224);
}

interface FixedSize {
  kind: string;
  patchSize: number;
  usual: { mean: readonly number[]; deviation: readonly number[] };
  /** null: the shorter side has a length, the other follows. */
  exact: { width: number; height: number } | null;
  pads: boolean;
  prompt(patches: number): (string | number)[];
}

function fixedPictures(fields: ConfigFields, of: FixedSize): PictureFamily {
  const { kind, exact, pads } = of;
  const shortest = exact === null ? shortestSide(fields) : 0;
  const crops = fields.boolean('do_center_crop', kind !== 'siglip');
  const crop = crops ? sizeOf(fields, 'crop_size', 224) : exact;
  if (crop === null) throw fields.error('do_center_crop', 'true, or size with width and height');
  const filter = filterOf(fields, 3);
  const colours = colourSettings(fields, of.usual);
  const ground = (colours.normal?.mean ?? of.usual.mean).map((one) => Math.trunc(one * 255) & 255);
  const target = (width: number, height: number) => {
    checkRatio(width, height);
    const side = Math.max(width, height);
    const whole = pads ? { width: side, height: side } : { width, height };
    return { whole, to: exact ?? withShorterSide(whole, shortest) };
  };
  return {
    settings: { kind, exact, shortest, pads, crops, crop, filter },
    layout: { size: of.patchSize, ...ROW_BY_ROW },
    colours,
    plan(width, height) {
      const { whole, to } = target(width, height);
      const { rows, columns } = patchGrid(crop, of.patchSize);
      const squared = pads ? whole.width * whole.height : 0;
      return {
        tiles: [crop],
        prompt: of.prompt(rows * columns),
        pixels: squared + to.width * (whole.height + to.height) + crop.width * crop.height,
      };
    },
    tiles(pixels) {
      const { whole, to } = target(pixels.width, pixels.height);
      const left = Math.floor((whole.width - pixels.width) / 2);
      const top = Math.floor((whole.height - pixels.height) / 2);
      const picture = pads ? placed(pixels, whole, left, top, ground) : pixels;
      const small = resized(picture, to.width, to.height, filter, 'torch');
      return [crops ? centerCropped(small, crop) : small];
    },
  };
}

/** The size of a picture whose shorter side has a length, and whose longer side follows. */
function withShorterSide({ width, height }: Size, short: number): Size {
  const long = Math.trunc((short * Math.max(width, height)) / Math.min(width, height));
  return width <= height ? { width: short, height: long } : { width: long, height: short };
}
