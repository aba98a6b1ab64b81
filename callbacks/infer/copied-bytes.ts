/**
 * A copy of bytes that has memory of its own, from its first byte to its last: any type of number may be read there. A Buffer's own `slice`
 * gives a view of the same memory, and is not to be used for that.
 *
 *   buffer   |..other bytes..| data |..other bytes..|
 *   copy                     | data |
 */
export function copiedBytes(data: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(data);
}
