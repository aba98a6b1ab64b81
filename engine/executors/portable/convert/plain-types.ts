import { fromHalf, halfToBits, load16 } from '../../../../base/half.js';

/** Converts the first `blocks` blocks of `source` into floats at the beginning of `target`. */
export type BlockReader = (source: Uint8Array, blocks: number, target: Float32Array) => void;

// Copies float32 as bits, so that a NaN keeps its bits.

export const f32Row: BlockReader = (source, blocks, target) => {
  const bytes = new Uint8Array(target.buffer, target.byteOffset, 4 * blocks);
  bytes.set(source.subarray(0, 4 * blocks));
};

export const f16Row: BlockReader = (source, blocks, target) => {
  const bits = new Uint32Array(target.buffer, target.byteOffset, blocks);
  for (let i = 0; i < blocks; i++) bits[i] = halfToBits(load16(source, 2 * i));
};

export const bf16Row: BlockReader = (source, blocks, target) => {
  const bits = new Uint32Array(target.buffer, target.byteOffset, blocks);
  for (let i = 0; i < blocks; i++) bits[i] = load16(source, 2 * i) << 16;
};

// Formats with blocks of 32. The low nibbles of 16 bytes are elements 0..15, the high ones 16..31.

/** f16 scale | 16 bytes */
export const q4_0Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 18, t += 32) {
    const d = fromHalf(load16(source, s));
    for (let i = 0; i < 16; i++) {
      const byte = source[s + 2 + i]!;
      target[t + i] = d * ((byte & 15) - 8);
      target[t + i + 16] = d * ((byte >> 4) - 8);
    }
  }
};

/** f16 scale | f16 minimum | 16 bytes */
export const q4_1Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 20, t += 32) {
    const d = fromHalf(load16(source, s));
    const m = fromHalf(load16(source, s + 2));
    for (let i = 0; i < 16; i++) {
      const byte = source[s + 4 + i]!;
      target[t + i] = Math.fround(d * (byte & 15)) + m;
      target[t + i + 16] = Math.fround(d * (byte >> 4)) + m;
    }
  }
};

/** Bit `i` of the 32 bits in 4 bytes. */
const fifthBit = (source: Uint8Array, at: number, i: number) => (source[at + (i >> 3)]! >> (i & 7)) & 1;

/** f16 scale | 32 fifth bits | 16 bytes */
export const q5_0Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 22, t += 32) {
    const d = fromHalf(load16(source, s));
    for (let i = 0; i < 16; i++) {
      const byte = source[s + 6 + i]!;
      target[t + i] = d * (((byte & 15) | (fifthBit(source, s + 2, i) << 4)) - 16);
      target[t + i + 16] = d * (((byte >> 4) | (fifthBit(source, s + 2, i + 16) << 4)) - 16);
    }
  }
};

/** f16 scale | f16 minimum | 32 fifth bits | 16 bytes */
export const q5_1Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 24, t += 32) {
    const d = fromHalf(load16(source, s));
    const m = fromHalf(load16(source, s + 2));
    for (let i = 0; i < 16; i++) {
      const byte = source[s + 8 + i]!;
      target[t + i] = Math.fround(d * ((byte & 15) | (fifthBit(source, s + 4, i) << 4))) + m;
      target[t + i + 16] = Math.fround(d * ((byte >> 4) | (fifthBit(source, s + 4, i + 16) << 4))) + m;
    }
  }
};

/** f16 scale | 32 signed bytes */
export const q8_0Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 34, t += 32) {
    const d = fromHalf(load16(source, s));
    for (let i = 0; i < 32; i++) target[t + i] = ((source[s + 2 + i]! << 24) >> 24) * d;
  }
};
