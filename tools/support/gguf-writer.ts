import { writeFileSync } from 'node:fs';

/** Type ids of metadata values and of tensors, as GGUF numbers them. */
export const GGUF_TYPES = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  array: 9,
  u64: 10,
  i64: 11,
  f64: 12,
} as const;
export type GgufTypeName = keyof typeof GGUF_TYPES;
export const TENSOR_TYPE_IDS: Readonly<Record<string, number>> = {
  F32: 0,
  F16: 1,
  Q4_0: 2,
  Q4_1: 3,
  Q5_0: 6,
  Q5_1: 7,
  Q8_0: 8,
  Q2_K: 10,
  Q3_K: 11,
  Q4_K: 12,
  Q5_K: 13,
  Q6_K: 14,
  IQ2_XXS: 16,
  IQ2_XS: 17,
  IQ3_XXS: 18,
  IQ1_S: 19,
  IQ4_NL: 20,
  IQ3_S: 21,
  IQ2_S: 22,
  IQ4_XS: 23,
  IQ1_M: 29,
  BF16: 30,
  TQ1_0: 34,
  TQ2_0: 35,
  MXFP4: 39,
  NVFP4: 40,
  I32: 26,
};

/** A typed value: an array names the type of its items, which are raw values, or typed values where it is 'array'. */
export type TypedValue =
  | { type: Exclude<GgufTypeName, 'array'>; value: number | bigint | boolean | string }
  | { type: 'array'; of: GgufTypeName; value: readonly unknown[] };

export interface TestTensor {
  name: string;
  /** Outermost first, as PyTorch has it. */
  shape: readonly number[];
  type?: string;
  data: Uint8Array;
}

/** Writes GGUF files for tests and benches, byte by byte, right ones and wrong ones. */
export class GgufWriter {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  raw(bytes: Uint8Array): this {
    this.#chunks.push(Buffer.from(bytes));
    this.#length += bytes.length;
    return this;
  }

  u32(value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value >>> 0);
    return this.raw(bytes);
  }

  u64(value: number | bigint): this {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return this.raw(bytes);
  }

  string(text: string): this {
    const bytes = Buffer.from(text);
    return this.u64(bytes.length).raw(bytes);
  }

  header(tensors: number | bigint, keys: number | bigint, version = 3): this {
    return this.raw(Buffer.from('GGUF')).u32(version).u64(tensors).u64(keys);
  }

  pair(key: string, value: TypedValue): this {
    return this.string(key).u32(GGUF_TYPES[value.type]).value(value);
  }

  value(value: TypedValue): this {
    if (value.type === 'array') {
      this.u32(GGUF_TYPES[value.of]).u64(value.value.length);
      for (const item of value.value) {
        this.value(
          value.of === 'array' ? (item as TypedValue) : ({ type: value.of, value: item } as TypedValue),
        );
      }
      return this;
    }
    const bytes = Buffer.alloc(8);
    const number = Number(value.value);
    switch (value.type) {
      case 'string':
        return this.string(value.value as string);
      case 'bool':
        return this.raw(Buffer.from([value.value ? 1 : 0]));
      case 'u8':
        return this.raw(bytes.subarray(0, bytes.writeUInt8(number)));
      case 'i8':
        return this.raw(bytes.subarray(0, bytes.writeInt8(number)));
      case 'u16':
        return this.raw(bytes.subarray(0, bytes.writeUInt16LE(number)));
      case 'i16':
        return this.raw(bytes.subarray(0, bytes.writeInt16LE(number)));
      case 'u32':
        return this.raw(bytes.subarray(0, bytes.writeUInt32LE(number)));
      case 'i32':
        return this.raw(bytes.subarray(0, bytes.writeInt32LE(number)));
      case 'f32':
        return this.raw(bytes.subarray(0, bytes.writeFloatLE(number)));
      case 'f64':
        return this.raw(bytes.subarray(0, bytes.writeDoubleLE(number)));
      case 'u64':
        return this.raw(bytes.subarray(0, bytes.writeBigUInt64LE(BigInt(value.value))));
      case 'i64':
        return this.raw(bytes.subarray(0, bytes.writeBigInt64LE(BigInt(value.value))));
    }
  }

  tensorInfo(
    name: string,
    shape: readonly (number | bigint)[],
    typeId: number,
    offset: number | bigint,
  ): this {
    this.string(name).u32(shape.length);
    for (const dimension of [...shape].reverse()) this.u64(dimension);
    return this.u32(typeId).u64(offset);
  }

  align(alignment: number): this {
    return this.raw(Buffer.alloc(Math.ceil(this.#length / alignment) * alignment - this.#length));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** A whole, valid file. */
export function ggufBytes(
  metadata: Readonly<Record<string, TypedValue>>,
  tensors: readonly TestTensor[],
  options: { version?: number; alignment?: number } = {},
): Buffer {
  const { version = 3, alignment = 32 } = options;
  const writer = new GgufWriter().header(tensors.length, Object.keys(metadata).length, version);
  for (const [key, value] of Object.entries(metadata)) writer.pair(key, value);
  let offset = 0;
  for (const { name, shape, type = 'F32', data } of tensors) {
    writer.tensorInfo(name, shape, TENSOR_TYPE_IDS[type]!, offset);
    offset = Math.ceil((offset + data.length) / alignment) * alignment;
  }
  for (const { data } of tensors) writer.align(alignment).raw(data);
  return writer.bytes();
}

export function writeGguf(
  file: string,
  metadata: Readonly<Record<string, TypedValue>>,
  tensors: readonly TestTensor[],
): void {
  writeFileSync(file, ggufBytes(metadata, tensors));
}

/**
 * Writes a GGUF in parts, `NAME-00001-of-00003.gguf` and so on, as llama-gguf-split does.
 * @param change makes other metadata of a part, by its place from 0 @returns the first file
 */
export function writeGgufParts(
  name: string,
  metadata: Readonly<Record<string, TypedValue>>,
  tensors: readonly TestTensor[],
  count: number,
  change: (metadata: Record<string, TypedValue>, place: number) => void = () => {},
): string {
  const digits = (number: number) => String(number).padStart(5, '0');
  const perPart = Math.ceil(tensors.length / count);
  const files = Array.from({ length: count }, (_, place) => {
    const own: Record<string, TypedValue> = {
      ...(place === 0 ? metadata : {}),
      'split.no': { type: 'u16', value: place },
      'split.count': { type: 'u16', value: count },
      'split.tensors.count': { type: 'i32', value: tensors.length },
    };
    change(own, place);
    const file = `${name}-${digits(place + 1)}-of-${digits(count)}.gguf`;
    writeGguf(file, own, tensors.slice(place * perPart, (place + 1) * perPart));
    return file;
  });
  return files[0]!;
}
