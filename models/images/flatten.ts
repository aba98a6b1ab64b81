import { CHANNELS } from './resize.js';

const WHITE = 255;

/** a x b / 255, rounded as PIL does it. */
function times(a: number, b: number): number {
  const product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/** Red, green and blue of pixels with alpha on white, as PIL's `alpha_composite` on an opaque white picture. */
export function onWhite(pixels: Uint8Array): Uint8Array {
  const count = pixels.length / 4;
  const result = new Uint8Array(count * CHANNELS);
  for (let i = 0; i < count; i++) {
    const alpha = pixels[4 * i + 3]!;
    for (let c = 0; c < CHANNELS; c++) {
      // 7 bits more than a byte times a byte, rounded, and divided by 255.
      const sum = (pixels[4 * i + c]! * alpha + WHITE * (255 - alpha)) * 128 + (128 << 7);
      result[CHANNELS * i + c] = (((sum >> 8) + sum) >> 8) >> 7;
    }
  }
  return result;
}

/** Red, green and blue of cyan, magenta, yellow and black, as PIL's `convert`: without any colour profile. */
export function ofInks(pixels: Uint8Array): Uint8Array {
  const count = pixels.length / 4;
  const result = new Uint8Array(count * CHANNELS);
  for (let i = 0; i < count; i++) {
    const light = 255 - pixels[4 * i + 3]!;
    for (let c = 0; c < CHANNELS; c++) result[CHANNELS * i + c] = light - times(pixels[4 * i + c]!, light);
  }
  return result;
}

/** Red, green and blue of greys of 16 bits (of this machine's order), as PIL's `convert`, which cuts them at 255 instead of taking their upper halves. */
export function ofWideGreys(bytes: Uint8Array): Uint8Array {
  const greys = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  const result = new Uint8ClampedArray(greys.length * CHANNELS);
  greys.forEach((grey, i) => {
    result.fill(grey, CHANNELS * i, CHANNELS * (i + 1));
  });
  return new Uint8Array(result.buffer);
}

/** Makes pixels of one colour white, in place. */
export function withoutColour(
  pixels: Uint8Array,
  [red, green, blue]: readonly [number, number, number],
): void {
  for (let i = 0; i < pixels.length; i += CHANNELS)
    if (pixels[i] === red && pixels[i + 1] === green && pixels[i + 2] === blue)
      pixels.fill(WHITE, i, i + CHANNELS);
}
