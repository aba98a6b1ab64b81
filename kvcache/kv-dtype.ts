/** Numeric type of the KV cache: int8 with a scale for each token's keys, and its values, in each head. */
export type KvDtype = 'f32' | 'bf16' | 'int8';
