import { CHANNELS, type Pixels } from '../resize.js';

/** A part of a picture, which lies inside of it. */
export function cropped(pixels: Pixels, left: number, top: number, width: number, height: number): Pixels {
  if (left === 0 && top === 0 && width === pixels.width && height === pixels.height) return pixels;
  return placed(pixels, { width, height }, -left, -top, [0, 0, 0]);
}

/** A picture on a ground of one colour, from a place on that may lie outside of the ground, as may a part of the picture. */
export function placed(
  pixels: Pixels,
  { width, height }: { width: number; height: number },
  left: number,
  top: number,
  ground: readonly number[],
): Pixels {
  const bytes = new Uint8Array(width * height * CHANNELS);
  if (ground.some((one) => one !== 0)) for (let i = 0; i < bytes.length; i += CHANNELS) bytes.set(ground, i);
  const from = Math.max(0, -left);
  const end = Math.min(pixels.width, width - left);
  for (let y = Math.max(0, -top); y < Math.min(pixels.height, height - top); y++) {
    const row = pixels.bytes.subarray(
      (y * pixels.width + from) * CHANNELS,
      (y * pixels.width + end) * CHANNELS,
    );
    bytes.set(row, ((y + top) * width + from + left) * CHANNELS);
  }
  return { width, height, bytes };
}

/** The middle of a picture as transformers' `center_crop` has it: black where the picture is smaller than the crop. */
export function centerCropped(pixels: Pixels, { width, height }: { width: number; height: number }): Pixels {
  const wide = Math.max(width, pixels.width);
  const high = Math.max(height, pixels.height);
  const left = Math.max(0, Math.floor((width - pixels.width) / 2));
  const top = Math.max(0, Math.floor((height - pixels.height) / 2));
  if (wide === width && high === height) return placed(pixels, { width, height }, left, top, [0, 0, 0]);
  return placed(
    pixels,
    { width, height },
    left - Math.trunc((wide - width) / 2),
    top - Math.trunc((high - height) / 2),
    [0, 0, 0],
  );
}
