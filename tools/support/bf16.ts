const floats = new Float32Array(1);
const bits = new Uint32Array(floats.buffer);

/** The 16 bits of x rounded to bfloat16, ties to even. */
export function bf16Bits(x: number): number {
  floats[0] = x;
  return ((bits[0]! + 0x7fff + ((bits[0]! >>> 16) & 1)) >>> 16) & 0xffff;
}

export function roundToBf16(x: number): number {
  const rounded = bf16Bits(x);
  bits[0] = rounded * 65536;
  return floats[0]!;
}
