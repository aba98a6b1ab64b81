/** `blocks` blocks at the beginning of `source` -> as many floats as they hold, at the beginning of `target`. */
export type BlockReader = (source: Uint8Array, blocks: number, target: Float32Array) => void;
