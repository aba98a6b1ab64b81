const LENGTH_BYTES = 4;
const encoder = new TextEncoder();

/** Elements of BYTES that a request may have in all its inputs: each costs some hundred bytes of memory, however short it is. */
export const MAX_ELEMENTS = 500_000;

/**
 * Data of a BYTES tensor: each element is its length, 4 bytes little-endian, and its bytes. Texts are written as UTF-8. Source: the
 * Open Inference Protocol's binary extension.
 */
export function packElements(elements: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const parts = elements.map((element) => (typeof element === 'string' ? encoder.encode(element) : element));
  const data = new Uint8Array(parts.reduce((sum, { length }) => sum + LENGTH_BYTES + length, 0));
  const view = new DataView(data.buffer);
  let offset = 0;
  for (const part of parts) {
    view.setUint32(offset, part.length, true);
    data.set(part, offset + LENGTH_BYTES);
    offset += LENGTH_BYTES + part.length;
  }
  return data;
}

/** The number of elements of BYTES data; null where a length points beyond the end. */
export function countElements(data: Uint8Array): number | null {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let count = 0;
  for (let offset = 0; offset < data.length; count++) {
    if (offset + LENGTH_BYTES > data.length) return null;
    offset += LENGTH_BYTES + view.getUint32(offset, true);
    if (offset > data.length) return null;
  }
  return count;
}

/** The elements of BYTES data that is known to be whole (countElements); they are not copied. */
export function elementsOf(data: Uint8Array): Uint8Array[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const elements: Uint8Array[] = [];
  for (let offset = 0; offset + LENGTH_BYTES <= data.length; ) {
    const end = offset + LENGTH_BYTES + view.getUint32(offset, true);
    elements.push(data.subarray(offset + LENGTH_BYTES, end));
    offset = end;
  }
  return elements;
}
