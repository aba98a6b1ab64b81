import type { ConfigFields } from './config-fields.js';

/** A length in pixels, or two that are equal, as InternVL's files have it. @param usual where there is none; absent: there has to be one */
export function squareSide(fields: ConfigFields, key: string, most: number, usual?: number): number {
  const given = fields.raw(key);
  if (!Array.isArray(given)) return fields.integer(key, 1, most, usual);
  const [height, width] = given as unknown[];
  const isSquare = given.length === 2 && height === width;
  if (isSquare && Number.isInteger(height) && (height as number) > 0 && (height as number) <= most)
    return height as number;
  throw fields.error(key, `a whole number of pixels up to ${most}, or two that are equal`);
}
