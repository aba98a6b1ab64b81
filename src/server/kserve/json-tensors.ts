import { packElements } from '../../../callbacks/infer/byte-elements.js';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from '../../serving/infer-failure.js';
import { NUMBER_TYPES } from '../../serving/protocol/number-types.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import { NumberElements, TextElements } from './json-elements.js';

const UTF8 = { ignoreBOM: true, fatal: true } as const;
const decoder = new TextDecoder('utf-8', UTF8);

/** A list of JSON that is still text: that of a long request, whose elements are read in turns. */
export class ListText {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** An input as far as its list says what it has to be. */
interface Wanted {
  name: string;
  datatype: Datatype;
  /** Elements by the shape. */
  count: number;
}

/**
 * The bytes of a tensor's elements that came as JSON, flat or as nested lists.
 * @throws InferError where they are others, or as many as the shape does not say
 */
export function bytesOfJson({ name, datatype, count }: Wanted, data: unknown): Uint8Array {
  const values = flat(name, data, count);
  if (datatype === 'BYTES') return bytesOfTexts(name, values);
  const type = typeIn(name, datatype);
  const bytes = new Uint8Array(count * type.bytes);
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const value of values) {
    // JSON has no infinite number: it was one with too large an exponent.
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY)
      throw notOfType(name, datatype, 'a number with too large an exponent');
    if (!type.write(view, offset, value)) throw notOfType(name, datatype, shown(value));
    offset += type.bytes;
  }
  return bytes;
}

function bytesOfTexts(name: string, values: readonly unknown[]): Uint8Array {
  const parts = values.map((value) => {
    if (typeof value === 'string') return value;
    throw notOfType(name, 'BYTES', shown(value));
  });
  return packElements(parts);
}

/** The elements of nested lists in order. */
function flat(name: string, data: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(data)) throw malformed(`Unable to parse 'data': a list is expected for input '${name}'`);
  const values = data.some(Array.isArray) ? data.flat(Number.POSITIVE_INFINITY) : data;
  if (values.length === count) return values;
  throw otherCount(name, count, String(values.length));
}

/** Bytes of a list's text that are read in one go. */
const SLICE = 2 ** 17;

/** The same of a list that is still text, with turns of others in between. @throws InferError as bytesOfJson, and where the client leaves */
export async function bytesOfList(
  { name, datatype, count }: Wanted,
  { bytes }: ListText,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const refusals = {
    ofType: (found: string) => notOfType(name, datatype, found),
    ofCount: (found: string) => otherCount(name, count, found),
  };
  const elements =
    datatype === 'BYTES'
      ? new TextElements(bytes, count, refusals)
      : new NumberElements(bytes, count, typeIn(name, datatype), refusals);
  for (let end = SLICE; !elements.read(end); end += SLICE) await nextTurn(signal);
  return elements.result();
}

/** The most bytes that the elements of such a list take: what is held while it is read. */
export function mostBytesOf({ name, datatype, count }: Wanted, { bytes }: ListText): number {
  if (datatype === 'BYTES') return 4 + Math.ceil((4 * bytes.length) / 3);
  return Math.min(count, bytes.length) * typeIn(name, datatype).bytes;
}

function typeIn(name: string, datatype: Datatype) {
  const type = NUMBER_TYPES[datatype];
  if (type !== undefined) return type;
  throw malformed(
    `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
  );
}

function notOfType(name: string, datatype: Datatype, found: string): InferError {
  return malformed(`Unable to parse 'data' of input '${name}': ${found} is not of type ${datatype}`);
}

function otherCount(name: string, count: number, found: string): InferError {
  return malformed(
    `Unable to parse 'data': Shape does not match true shape of 'data' field: input '${name}' has ${found} elements, and its shape ${count}`,
  );
}

/** A value of a refusal; whole numbers beyond those of JavaScript are of a type that JSON.stringify does not take. */
const shown = (value: unknown) => {
  if (typeof value === 'bigint') return String(value).slice(0, 60);
  const plain = (_: string, one: unknown) => (typeof one === 'bigint' ? Number(one) : one);
  return (JSON.stringify(value, plain) ?? 'nothing').slice(0, 60);
};

/** Elements that are written in one go. */
const PIECE = 2 ** 14;

/**
 * The elements of an output as a list of JSON, flat, as Triton writes them, in pieces between which others may have their turn.
 * @throws InferError for FP16 and BF16, and for texts that are not UTF-8: JSON has no form for them
 */
export function* jsonOfTensor({ name, datatype, data }: InferTensor): Generator<string> {
  if (datatype === 'BYTES') return yield* jsonOfTexts(name, data);
  const type = NUMBER_TYPES[datatype];
  if (type === undefined) {
    throw malformed(
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const piece = PIECE * type.bytes;
  let text = '[';
  for (let begin = 0; begin < data.length; begin += piece) {
    if (begin > 0) text += ',';
    const texts: string[] = [];
    const end = Math.min(data.length, begin + piece);
    for (let offset = begin; offset < end; offset += type.bytes) texts.push(type.text(view, offset));
    text += texts.join(',');
    if (end === data.length) break;
    yield text;
    text = '';
  }
  yield `${text}]`;
}

/** Bytes of texts that are written in one go. */
const TEXT_PIECE = 2 ** 17;

/** @throws InferError for a text that is not UTF-8 */
function* jsonOfTexts(name: string, data: Uint8Array): Generator<string> {
  try {
    yield* textsOf(data);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    throw malformed(
      `output '${name}' has bytes that are not UTF-8, which JSON has no form for. Please use the binary data format for output`,
    );
  }
}

function* textsOf(data: Uint8Array): Generator<string> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let text = '[';
  let work = 0;
  for (let offset = 0; offset + 4 <= data.length; ) {
    const end = offset + 4 + view.getUint32(offset, true);
    if (offset > 0) text += ',';
    const bytes = data.subarray(offset + 4, end);
    if (bytes.length <= TEXT_PIECE) text += JSON.stringify(decoder.decode(bytes));
    else {
      yield text;
      yield* longText(bytes);
      text = '';
    }
    // A text takes as long as some tens of bytes, should it be empty.
    work += 32 + Math.min(end - offset, TEXT_PIECE);
    offset = end;
    if (work < TEXT_PIECE) continue;
    yield text;
    text = '';
    work = 0;
  }
  yield `${text}]`;
}

/** One text in parts, which break no character. */
function* longText(bytes: Uint8Array): Generator<string> {
  const parts = new TextDecoder('utf-8', UTF8);
  yield '"';
  for (let begin = 0; begin < bytes.length; begin += TEXT_PIECE) {
    const end = begin + TEXT_PIECE;
    const part = parts.decode(bytes.subarray(begin, end), { stream: end < bytes.length });
    yield JSON.stringify(part).slice(1, -1);
  }
  yield '"';
}
