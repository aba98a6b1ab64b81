/**
 * Values that a layer keeps of each token. All layers share one block table: a block has room for the same number of
 * tokens in each layer, whatever the layer keeps of them.
 */
export type CacheShape = {
  /** A key and a value for each head. */
  kind: 'keysAndValues';
  kvHeads: number;
  /** Numbers in a key. */
  keyDim: number;
  /** Numbers in a value. */
  valueDim: number;
};

/**
 * Values that a layer keeps of a sequence as a whole, however long it is: they change with each token. All layers share
 * a sequence's slot.
 */
export interface StateShape {
  /** Numbers in f32. */
  size: number;
}

/** Numeric type of the KV cache: int8 has one scale for each token's key, and one for its value, in each head. */
export type KvDtype = 'f32' | 'bf16' | 'int8';
