import {
  type ResizeArithmetic,
  type ResizeFilter,
  type ResizeWeights,
  resizeWeights,
} from './resize-weights.js';

/** A picture's pixels: rows from the top, in each from the left, red, green and blue bytes in turn. */
export interface Pixels {
  width: number;
  height: number;
  /** [height x width x 3] */
  bytes: Uint8Array;
}

export interface Size {
  width: number;
  height: number;
}

/** Bytes of a pixel. */
export const CHANNELS = 3;

/**
 * A picture in another size: first along its rows, then along its columns, with bytes in between, as PIL's `Image.resize` without
 * reducing gap and torch's antialiased `interpolate` of bytes do. The bytes are theirs, by the arithmetic that is named.
 */
export function resized(
  pixels: Pixels,
  width: number,
  height: number,
  filter: ResizeFilter,
  arithmetic: ResizeArithmetic,
): Pixels {
  const wide =
    width === pixels.width
      ? pixels
      : resizedRows(pixels, resizeWeights(pixels.width, width, filter, arithmetic));
  return height === pixels.height
    ? wide
    : resizedColumns(wide, resizeWeights(pixels.height, height, filter, arithmetic));
}

function resizedRows({ width, height, bytes }: Pixels, along: ResizeWeights): Pixels {
  const { starts, counts, weights, stride, bits } = along;
  const outputs = starts.length;
  const half = 1 << (bits - 1);
  // A clamped array cuts what a filter's negative weights leave outside of a byte.
  const result = new Uint8ClampedArray(outputs * height * CHANNELS);
  let to = 0;
  for (let y = 0; y < height; y++) {
    const row = y * width * CHANNELS;
    for (let x = 0; x < outputs; x++) {
      let red = half;
      let green = half;
      let blue = half;
      let from = row + starts[x]! * CHANNELS;
      const first = x * stride;
      const end = first + counts[x]!;
      for (let k = first; k < end; k++) {
        const weight = weights[k]!;
        red = (red + Math.imul(bytes[from]!, weight)) | 0;
        green = (green + Math.imul(bytes[from + 1]!, weight)) | 0;
        blue = (blue + Math.imul(bytes[from + 2]!, weight)) | 0;
        from += CHANNELS;
      }
      result[to] = red >> bits;
      result[to + 1] = green >> bits;
      result[to + 2] = blue >> bits;
      to += CHANNELS;
    }
  }
  return { width: outputs, height, bytes: new Uint8Array(result.buffer) };
}

function resizedColumns({ width, bytes }: Pixels, along: ResizeWeights): Pixels {
  const { starts, counts, weights, stride, bits } = along;
  const outputs = starts.length;
  const length = width * CHANNELS;
  const half = 1 << (bits - 1);
  const sums = new Int32Array(length);
  const result = new Uint8ClampedArray(length * outputs);
  for (let y = 0; y < outputs; y++) {
    sums.fill(half);
    for (let k = 0; k < counts[y]!; k++) {
      const weight = weights[y * stride + k]!;
      const row = (starts[y]! + k) * length;
      for (let i = 0; i < length; i++) sums[i] = (sums[i]! + Math.imul(bytes[row + i]!, weight)) | 0;
    }
    const to = y * length;
    for (let i = 0; i < length; i++) result[to + i] = sums[i]! >> bits;
  }
  return { width, height: outputs, bytes: new Uint8Array(result.buffer) };
}
