import { ConfigFields } from '../../checkpoints/config-fields.js';
import { isObject } from '../../checkpoints/file-reading.js';
import { PictureError } from '../picture-error.js';
import type { ResizeFilter } from '../resize-weights.js';

/** Most pixels of a side that a configuration may ask for, and of a patch's. */
export const MAX_CONFIGURED_SIDE = 4096;
export const MAX_PATCH_SIZE = 256;
/** Most times that a picture may be longer than wide, where its shorter side is given. */
const MAX_RATIO = 200;

/** Filters by the numbers that PIL has for them. */
const FILTERS = new Map<unknown, ResizeFilter>([
  [1, 'lanczos'],
  [2, 'bilinear'],
  [3, 'bicubic'],
]);

/** The fields of an object within another; none where it is missing. */
export function innerFields(fields: ConfigFields, key: string): ConfigFields {
  const value = fields.raw(key) ?? {};
  if (!isObject(value)) throw fields.error(key, 'an object');
  return new ConfigFields(`${fields.where}: ${key}`, value);
}

/** The filter of a resize, which all families do. */
export function filterOf(fields: ConfigFields, usual: number): ResizeFilter {
  if (!fields.boolean('do_resize', true)) throw fields.error('do_resize', 'true');
  const filter = FILTERS.get(fields.raw('resample') ?? usual);
  if (filter === undefined) throw fields.error('resample', '1, 2 or 3 (lanczos, bilinear, bicubic)');
  return filter;
}

/** Width and height that a field gives, as a number for both or by their names. */
export function sizeOf(fields: ConfigFields, key: string, usual: number): { width: number; height: number } {
  const value = fields.raw(key) ?? usual;
  if (!isObject(value)) {
    const side = fields.integer(key, 1, MAX_CONFIGURED_SIDE, usual);
    return { width: side, height: side };
  }
  const inner = innerFields(fields, key);
  return {
    width: inner.integer('width', 1, MAX_CONFIGURED_SIDE),
    height: inner.integer('height', 1, MAX_CONFIGURED_SIDE),
  };
}

/** @throws PictureError for a picture that is much longer than wide, or the other way round */
export function checkRatio(width: number, height: number): void {
  if (Math.max(width, height) > MAX_RATIO * Math.min(width, height))
    throw new PictureError(
      `The picture has ${width} x ${height} pixels: one side may be ${MAX_RATIO} times as long as the other.`,
    );
}
