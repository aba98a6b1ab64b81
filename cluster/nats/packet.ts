import { SkeinError } from '../../base/skein-error.js';

/**
 * Values as bytes: JSON, and the typed arrays in it as they lie in memory (little-endian).
 *
 *   | u32 length of the JSON | JSON | array 0 | array 1 | ...
 *
 *   {"tokens": Int32Array [5, 6], "seed": 7n, "left": [Infinity]}
 *     -> {"tokens":{"$":"i2"},"seed":{"$":"7n"},"left":[{"$":"Infinity"}]} 05 00 00 00 06 00 00 00
 *
 * Objects with the key $ cannot be packed. Fields that are undefined are left out.
 */
export type Packable =
  | null
  | undefined
  | boolean
  | number
  | string
  | bigint
  | Int32Array
  | Float32Array
  | Float64Array
  | Uint8Array
  | readonly Packable[]
  | { readonly [field: string]: Packable };

type Numbers = Int32Array | Float32Array | Float64Array | Uint8Array;

const KINDS = { i: Int32Array, f: Float32Array, d: Float64Array, u: Uint8Array } as const;
const MARK = '$';
/** Levels of objects and lists in each other; messages have a few. */
const MAX_DEPTH = 16;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Bytes that are no packet, or no packet of what is expected. */
export class PacketError extends SkeinError {
  override name = 'PacketError';
  override readonly code = 'SKEIN_QUEUE_PACKET';
}

export function pack(value: Packable): Uint8Array {
  const arrays: Numbers[] = [];
  const json = encoder.encode(JSON.stringify(lifted(value, arrays)));
  const size = arrays.reduce((sum, { byteLength }) => sum + byteLength, 4 + json.length);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  let offset = 4 + json.length;
  for (const { buffer, byteOffset, byteLength } of arrays) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), offset);
    offset += byteLength;
  }
  return bytes;
}

/** The value with marks where typed arrays, big integers and numbers were that JSON has no words for. */
function lifted(value: Packable, arrays: Numbers[]): unknown {
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { [MARK]: textOf(value) };
  if (typeof value === 'bigint') return { [MARK]: `${value}n` };
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one: Packable) => lifted(one, arrays) ?? null);
  if (ArrayBuffer.isView(value)) {
    const view = value as Numbers;
    arrays.push(view);
    return { [MARK]: `${kindOf(view)}${view.length}` };
  }
  const fields: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value)) {
    if (one !== undefined) fields[name] = lifted(one as Packable, arrays);
  }
  return fields;
}

const textOf = (value: number) => (Object.is(value, -0) ? '-0' : String(value));

function kindOf(array: Numbers): keyof typeof KINDS {
  if (array instanceof Int32Array) return 'i';
  if (array instanceof Float32Array) return 'f';
  return array instanceof Float64Array ? 'd' : 'u';
}

/** @throws PacketError */
export function unpack(bytes: Uint8Array): unknown {
  const { json, rest } = split(bytes);
  const reader = new ArrayReader(rest);
  const whole = lowered(json, reader, 0);
  if (!reader.isAtEnd) throw new PacketError('A packet has bytes after its last array.');
  return whole;
}

/** The JSON of a packet, with marks in place of what it has no words for. @throws PacketError */
export function jsonOf(bytes: Uint8Array): unknown {
  return split(bytes).json;
}

function split(bytes: Uint8Array): { json: unknown; rest: Uint8Array } {
  if (bytes.byteLength < 4)
    throw new PacketError(`A packet has ${bytes.byteLength} bytes; at least 4 are expected.`);
  const length = (bytes[0]! | (bytes[1]! << 8) | (bytes[2]! << 16) | (bytes[3]! << 24)) >>> 0;
  const end = 4 + length;
  if (end > bytes.byteLength) {
    throw new PacketError(`A packet of ${bytes.byteLength} bytes names ${length} bytes of JSON.`);
  }
  try {
    return { json: JSON.parse(decoder.decode(bytes.subarray(4, end))), rest: bytes.subarray(end) };
  } catch {
    throw new PacketError('The beginning of a packet is no JSON.');
  }
}

/** Takes arrays out of the rest of a packet, one after the other. */
class ArrayReader {
  readonly #bytes: Uint8Array;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.byteLength;
  }

  take(kind: keyof typeof KINDS, length: number): Numbers {
    const Kind = KINDS[kind];
    const end = this.#offset + length * Kind.BYTES_PER_ELEMENT;
    if (end > this.#bytes.byteLength) {
      throw new PacketError(`A packet names an array of ${length} numbers that it does not have.`);
    }
    // A copy: what lies in a message lies at any address, and among others.
    const { buffer, byteOffset } = this.#bytes;
    const own = buffer.slice(byteOffset + this.#offset, byteOffset + end) as ArrayBuffer;
    this.#offset = end;
    return new Kind(own, 0, length);
  }
}

const ARRAY = /^([ifdu])(\d{1,10})$/;
const INTEGER = /^-?\d{1,20}n$/;

function lowered(value: unknown, reader: ArrayReader, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw new PacketError(`A packet has more than ${MAX_DEPTH} levels.`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = lowered(value[i], reader, depth + 1);
    return value;
  }
  const fields = value as Record<string, unknown>;
  const mark = fields[MARK];
  if (mark !== undefined) return unmarked(mark, reader);
  for (const name of Object.keys(fields)) fields[name] = lowered(fields[name], reader, depth + 1);
  return fields;
}

function unmarked(mark: unknown, reader: ArrayReader): unknown {
  const text = typeof mark === 'string' ? mark : typeof mark;
  const array = ARRAY.exec(text);
  if (array !== null) return reader.take(array[1] as keyof typeof KINDS, Number(array[2]));
  if (INTEGER.test(text)) return BigInt(text.slice(0, -1));
  if (['NaN', 'Infinity', '-Infinity', '-0'].includes(text)) return Number(text);
  throw new PacketError(`A packet has the mark ${JSON.stringify(text.slice(0, 40))}, which nothing knows.`);
}
