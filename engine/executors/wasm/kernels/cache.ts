/**
 * One layer of the paged pool: for each block and each KV head, the keys of its tokens and then their values.
 *
 *   keys     panels of 8 tokens, each transposed    [tokensPerBlock / 8][headDim][8]
 *   values   token after token                      [tokensPerBlock][headDim]
 *
 * With this layout attention reads both as a product reads its packed weights: eight scores, or eight values of a head,
 * side by side. tokensPerBlock is a multiple of 8.
 */

/**
 * Writes k and v of rows [0, rows) into their slots. kv: k of the first row, v lies kvHeads * headDim floats
 * after it; `stride` floats between rows; slots: i32 each, block * tokensPerBlock + offset.
 */
export function storeKv(
  layer: usize,
  tokensPerBlock: i32,
  kvHeads: i32,
  headDim: i32,
  kv: usize,
  stride: i32,
  rows: i32,
  slots: usize,
): void {
  const headBytes = (<usize>tokensPerBlock * <usize>headDim) << 3;
  const vApart = (<usize>kvHeads * <usize>headDim) << 2;
  for (let row = 0; row < rows; row++, kv += (<usize>stride) << 2) {
    const slot = i32.load(slots + ((<usize>row) << 2));
    const block = slot / tokensPerBlock;
    const offset = slot - block * tokensPerBlock;
    let head = layer + <usize>(block * kvHeads) * headBytes;
    let k = kv;
    for (let h = 0; h < kvHeads; h++, head += headBytes, k += (<usize>headDim) << 2) {
      const key = head + ((<usize>(offset & ~7) * <usize>headDim + <usize>(offset & 7)) << 2);
      const value = head + (headBytes >> 1) + ((<usize>offset * <usize>headDim) << 2);
      for (let d: usize = 0; d < <usize>headDim; d++) {
        f32.store(key + (d << 5), f32.load(k + (d << 2)));
        f32.store(value + (d << 2), f32.load(k + vApart + (d << 2)));
      }
    }
  }
}
