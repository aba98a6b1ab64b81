/** Filters of PIL's `Image.resize`, which is also where torchvision takes those of the same names from. */
export type ResizeFilter = 'bilinear' | 'bicubic' | 'lanczos';

/**
 * The fixed-point arithmetic of a resize. `pil`: weights with 22 fractional bits, as in Pillow's Resample.c.
 * `torch`: weights that fit 16 bits, with as many fractional bits as the largest of them leaves, as torch's
 * antialiased interpolation of bytes on a CPU has them. Their bytes differ by one here and there.
 */
export type ResizeArithmetic = 'pil' | 'torch';

/** The weights of one direction: output i is the sum of `counts[i]` inputs from `starts[i]` on, by weights from `i * stride` on. */
export interface ResizeWeights {
  starts: Int32Array;
  counts: Int32Array;
  weights: Int32Array;
  stride: number;
  /** Fractional bits of the weights. */
  bits: number;
}

const PIL_BITS = 32 - 8 - 2;
const MAX_TORCH_BITS = 22;
const LEAST_BEYOND_INT16 = 2 ** 15;

/** Half of a filter's width in pixels of the input, or of the output where that has fewer. */
const SUPPORTS: Readonly<Record<ResizeFilter, number>> = { bilinear: 1, bicubic: 2, lanczos: 3 };

const FILTERS: Readonly<Record<ResizeFilter, (x: number) => number>> = {
  bilinear: (x) => Math.max(0, 1 - Math.abs(x)),
  bicubic: (signed) => {
    const x = Math.abs(signed);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
  },
  lanczos: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0),
};

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
}

/** Weights that take a row of `from` pixels to one of `to`, widened for a reduction, so that every pixel counts. */
export function resizeWeights(
  from: number,
  to: number,
  filter: ResizeFilter,
  arithmetic: ResizeArithmetic,
): ResizeWeights {
  const scale = from / to;
  const widening = Math.max(1, scale);
  const support = SUPPORTS[filter] * widening;
  const stride = Math.ceil(support) * 2 + 1;
  const starts = new Int32Array(to);
  const counts = new Int32Array(to);
  const exact = new Float64Array(to * stride);
  const value = FILTERS[filter];
  let largest = 0;
  for (let i = 0; i < to; i++) {
    const center = (i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(center - support + 0.5));
    const count = Math.min(from, Math.trunc(center + support + 0.5)) - start;
    let sum = 0;
    for (let j = 0; j < count; j++) {
      const weight = value((j + start - center + 0.5) * (1 / widening));
      exact[i * stride + j] = weight;
      sum += weight;
    }
    for (let j = i * stride; j < i * stride + count; j++) {
      if (sum !== 0) exact[j]! /= sum;
      largest = Math.max(largest, exact[j]!);
    }
    starts[i] = start;
    counts[i] = count;
  }
  const bits = arithmetic === 'pil' ? PIL_BITS : int16Bits(largest);
  return { starts, counts, weights: Int32Array.from(exact, (one) => fixedPoint(one, bits)), stride, bits };
}

/** Most fractional bits with which the largest weight fits 16 bits. */
function int16Bits(largest: number): number {
  let bits = 0;
  while (bits < MAX_TORCH_BITS && Math.trunc(0.5 + largest * 2 ** (bits + 1)) < LEAST_BEYOND_INT16) bits++;
  return bits;
}

function fixedPoint(weight: number, bits: number): number {
  return Math.trunc(weight * 2 ** bits + (weight < 0 ? -0.5 : 0.5));
}
