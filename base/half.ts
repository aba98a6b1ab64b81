const FLOAT = new Float32Array(1);
const BITS = new Uint32Array(FLOAT.buffer);

/** The float32 bits of an IEEE half. A NaN becomes quiet, as a processor's instruction does it. */
export function halfToBits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) {
    FLOAT[0] = fraction * 2 ** -24; // zero and subnormal: exact in float32
    return (sign | BITS[0]!) >>> 0;
  }
  const quiet = exponent === 31 && fraction !== 0 ? 0x400000 : 0;
  const wide = exponent === 31 ? 0xff : exponent + (127 - 15);
  return (sign | (wide << 23) | (fraction << 13) | quiet) >>> 0;
}

/** The value of an IEEE half. */
export function fromHalf(half: number): number {
  BITS[0] = halfToBits(half);
  return FLOAT[0]!;
}

/** The nearest IEEE half of a float32, ties to even; beyond 65520 infinity, NaN stays a (quiet) NaN. */
export function toHalf(value: number): number {
  FLOAT[0] = value;
  const bits = BITS[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 rounds to a multiple of 2^-24.
    BITS[0] = magnitude;
    FLOAT[0] = FLOAT[0]! + 0.5;
    return sign | (BITS[0]! - 0x3f000000);
  }
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
  return sign | ((rounded - ((127 - 15) << 23)) >>> 13);
}

/** The nearest bfloat16 of the bits of a float32, ties to even; NaN stays a (quiet) NaN. */
export function bitsToBf16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** A little-endian number of two bytes. */
export function load16(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

export function store16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >> 8;
}
