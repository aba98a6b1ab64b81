/** Numeric type of the KV cache: int8 has one scale for each token's key, and one for its value, in each head. */
export type KvDtype = 'f32' | 'bf16' | 'int8';
