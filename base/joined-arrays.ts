/** One array of several; a single one is returned as it is. */
export function joinedFloats(parts: readonly Float32Array[]): Float32Array {
  return parts.length === 1 ? parts[0]! : copied(parts, (length) => new Float32Array(length));
}

/** A copy of several arrays, one after the other. */
export function joinedBytes(parts: readonly Uint8Array[]): Uint8Array {
  return copied(parts, (length) => new Uint8Array(length));
}

function copied<Numbers extends Float32Array | Uint8Array>(
  parts: readonly Numbers[],
  create: (length: number) => Numbers,
): Numbers {
  const all = create(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}
