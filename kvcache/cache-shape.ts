/**
 * What a layer keeps of each token. All layers share one block table: a block has room for so many tokens in each of them,
 * whatever a layer keeps of them.
 */
export type CacheShape = {
  /** A key and a value in each head. */
  kind: 'keysAndValues';
  kvHeads: number;
  /** Numbers of a key. */
  keyDim: number;
  /** Numbers of a value. */
  valueDim: number;
};
