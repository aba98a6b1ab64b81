import { createRequire } from 'node:module';
import type protobuf from 'protobufjs';
import type { InferParameters, InferTensor } from '../../../../callbacks/infer/infer-types.js';

/** Tags of the fields that are written here: length-delimited, of the numbers 1, 2 and 6. */
const ERROR_MESSAGE_TAG = (1 << 3) | 2;
const INFER_RESPONSE_TAG = (2 << 3) | 2;
const RAW_OUTPUT_TAG = (6 << 3) | 2;

/** The fields of an answer besides its tensors. */
export interface AnswerHead {
  model: string;
  /** '': left out. */
  version: string;
  id: string;
  parameters: InferParameters;
}

/**
 * The parts of a message ModelInferResponse, which follow each other. Tensors are parts as they lie in memory: raw_output_contents has the
 * highest number, and so comes last.
 *
 *   | names, shapes, parameters | tag, length | tensor | tag, length | tensor |
 */
export function inferResponseParts(head: AnswerHead, tensors: readonly InferTensor[]): Uint8Array[] {
  const parts: Uint8Array[] = [headBytes(head, tensors)];
  for (const { data } of tensors) parts.push(lengthDelimited(RAW_OUTPUT_TAG, data.length), data);
  return parts;
}

/** The same as an answer of a stream. */
export function streamResponseParts(head: AnswerHead, tensors: readonly InferTensor[]): Uint8Array[] {
  const parts = inferResponseParts(head, tensors);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [lengthDelimited(INFER_RESPONSE_TAG, length), ...parts];
}

/** An error as an answer of a stream, by the id of its request. */
export function streamErrorParts(message: string, head: AnswerHead): Uint8Array[] {
  const text = Buffer.from(message);
  return [lengthDelimited(ERROR_MESSAGE_TAG, text.length), text, ...streamResponseParts(head, [])];
}

let writer: typeof protobuf.Writer | null = null;

/** Everything but the tensors' bytes. */
function headBytes(
  { model, version, id, parameters }: AnswerHead,
  tensors: readonly InferTensor[],
): Uint8Array {
  writer ??= (createRequire(import.meta.url)('protobufjs') as typeof protobuf).Writer;
  const out = writer.create();
  if (model !== '') out.uint32(tag(1)).string(model);
  if (version !== '') out.uint32(tag(2)).string(version);
  if (id !== '') out.uint32(tag(3)).string(id);
  for (const name in parameters) {
    out.uint32(tag(4)).fork().uint32(tag(1)).string(name).uint32(tag(2)).fork();
    writeParameter(out, parameters[name]!);
    out.ldelim().ldelim();
  }
  for (const { name, datatype, shape } of tensors) {
    out.uint32(tag(5)).fork().uint32(tag(1)).string(name).uint32(tag(2)).string(datatype);
    if (shape.length > 0) {
      out.uint32(tag(3)).fork();
      for (const size of shape) out.int64(size);
      out.ldelim();
    }
    out.ldelim();
  }
  return out.finish();
}

/** The tag of a field that has its length in front. */
const tag = (field: number) => (field << 3) | 2;

/** Writes a value as the field of InferParameter that holds it. */
function writeParameter(out: protobuf.Writer, value: InferParameters[string]): void {
  if (typeof value === 'boolean') out.uint32(1 << 3).bool(value);
  else if (typeof value === 'string') out.uint32(tag(3)).string(value);
  else if (typeof value === 'bigint' && value >= 2n ** 63n) out.uint32(5 << 3).uint64(halvesOf(value));
  else if (typeof value === 'bigint') out.uint32(2 << 3).int64(halvesOf(value));
  else if (Number.isSafeInteger(value)) out.uint32(2 << 3).int64(value);
  else out.uint32((4 << 3) | 1).double(value);
}

/** 64 bits as the library takes them. */
function halvesOf(value: bigint): protobuf.Long {
  const bits = BigInt.asUintN(64, value);
  return {
    low: Number(BigInt.asIntN(32, bits)),
    high: Number(BigInt.asIntN(32, bits >> 32n)),
    unsigned: value >= 2n ** 63n,
  } as protobuf.Long;
}

/** A field's tag, and the length of its bytes, which follow. */
function lengthDelimited(fieldTag: number, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(6);
  let at = 0;
  bytes[at++] = fieldTag;
  let rest = length;
  while (rest > 0x7f) {
    bytes[at++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 128);
  }
  bytes[at++] = rest;
  return bytes.subarray(0, at);
}
