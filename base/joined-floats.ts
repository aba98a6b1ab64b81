/** One array of several; a single one is returned as it is. */
export function joinedFloats(parts: readonly Float32Array[]): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}
