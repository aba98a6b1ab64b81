/** Element type of an input tensor; text: bytes of UTF-8. */
export type TensorType = 'i32' | 'f32' | 'u64' | 'bool' | 'text';

/**
 * Shape of an input tensor in the contract: 'one' is [1] (or [1, 1], which some clients send); V is the vocabulary, P
 * the width of a prompt's own rows; a small letter is any size.
 */
export type ShapeRule =
  | 'one'
  | '[n]'
  | '[1, n]'
  | '[1, 2]'
  | '[1, 3]'
  | '[1, 2, n]'
  | '[1, n, 4]'
  | '[1, V]'
  | '[d]'
  | '[d, V]'
  | '[n, h]'
  | '[s, n]'
  | '[n, P]'
  | '[n, 3]';

export interface TensorRule {
  type: TensorType;
  shape: ShapeRule;
  /** True if a batch of 1 may stand before the shape. */
  mayHaveBatch?: true;
}
