/** A field of a message of protobuf. Numbers are those of varints; fields of fixed size keep their bytes. */
export interface ProtoField {
  number: number;
  value: number | Uint8Array;
}

/** The fields of a message, in order; null where the bytes are no message. */
export function protoFields(bytes: Uint8Array): ProtoField[] | null {
  const fields: ProtoField[] = [];
  let at = 0;
  /** A varint as a signed number; beyond 2^53 it loses its lowest bits. */
  const varint = (): number | null => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) return null;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    return null;
  };
  while (at < bytes.length) {
    const key = varint();
    if (key === null || key < 8) return null;
    const [number, wire] = [Math.floor(key / 8), key % 8];
    if (wire === 0) {
      const value = varint();
      if (value === null) return null;
      fields.push({ number, value });
      continue;
    }
    const length = wire === 1 ? 8 : wire === 5 ? 4 : wire === 2 ? varint() : null;
    if (length === null || length < 0 || length > bytes.length - at) return null;
    fields.push({ number, value: bytes.subarray(at, at + length) });
    at += length;
  }
  return fields;
}
