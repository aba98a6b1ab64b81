/** Converts the first `blocks` blocks of `source` into floats at the beginning of `target`. */
export type BlockReader = (source: Uint8Array, blocks: number, target: Float32Array) => void;
