import type { ConfigFields } from '../../checkpoints/config-fields.js';
import { CHANNELS } from '../resize.js';

const VALUES = 256;

/** What an image processor does to a byte of each channel. */
export interface ColourSettings {
  /** What bytes are multiplied by; null where they stay. */
  factor: number | null;
  /** Means and deviations of the channels, before the factor; null where they are not used. */
  normal: { mean: readonly number[]; deviation: readonly number[] } | null;
}

/** Means and deviations of families whose configurations do not have to name them. */
export const CLIP_COLOURS = {
  mean: [0.48145466, 0.4578275, 0.40821073],
  deviation: [0.26862954, 0.26130258, 0.27577711],
} as const;
export const HALF_COLOURS = { mean: [0.5, 0.5, 0.5], deviation: [0.5, 0.5, 0.5] } as const;
export const PLAIN_COLOURS = { mean: [0, 0, 0], deviation: [1, 1, 1] } as const;

/** @param isNormal whether the family's class normalizes where the configuration does not say so */
export function colourSettings(
  fields: ConfigFields,
  usual: { mean: readonly number[]; deviation: readonly number[] },
  isNormal = true,
): ColourSettings {
  const channels = (key: string, fallback: readonly number[]) => {
    const value = fields.raw(key) ?? fallback;
    const isRight = Array.isArray(value) && value.length === CHANNELS && value.every(Number.isFinite);
    if (!isRight) throw fields.error(key, `an array of ${CHANNELS} numbers`);
    return value as number[];
  };
  return {
    factor: fields.boolean('do_rescale', true) ? fields.positive('rescale_factor', 1 / 255) : null,
    normal: fields.boolean('do_normalize', isNormal)
      ? {
          mean: channels('image_mean', usual.mean),
          deviation: channels('image_std', usual.deviation),
        }
      : null,
  };
}

/**
 * Float32 values of all bytes, [channel x 256], with the rounding of transformers' torchvision processors, which divide means and
 * deviations by the factor beforehand.
 */
export function colourTable({ factor, normal }: ColourSettings): Float32Array {
  const table = new Float32Array(CHANNELS * VALUES);
  const inverse = factor === null ? 1 : Math.fround(1 / factor);
  for (let c = 0; c < CHANNELS; c++)
    for (let value = 0; value < VALUES; value++) {
      const at = c * VALUES + value;
      if (normal === null) table[at] = factor === null ? value : value * Math.fround(factor);
      else {
        const mean = Math.fround(Math.fround(normal.mean[c]!) * inverse);
        const deviation = Math.fround(Math.fround(normal.deviation[c]!) * inverse);
        table[at] = Math.fround(value - mean) / deviation;
      }
    }
  return table;
}
