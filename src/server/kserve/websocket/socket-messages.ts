import { malformed } from '../../../serving/infer-failure.js';
import { statusOf, wordsOf } from '../errors.js';
import type { InferBody } from '../infer-answer.js';
import { lengthOf } from '../json-text.js';

/** A message of a client. */
export interface ReceivedMessage {
  bytes: Uint8Array;
  isBinary: boolean;
}

/** A message to a client. */
export interface SentMessage {
  content: string | readonly Uint8Array[];
  isBinary: boolean;
  /** To be called when it is out. */
  free?: () => void;
}

/** Bytes in front of a binary message that give the length of its JSON. */
const PREFIX_BYTES = 4;

/**
 * A message, cut where its JSON ends. A text is JSON alone. HTTP gives the length of the JSON in a header, which a message does not have; a
 * binary one has it in front, as an unsigned number of 32 bits in network order:
 *
 *   text     { "inputs": [ ... ] }
 *   binary   | 4 bytes: length of the JSON | JSON | tensors of the inputs, as their binary_data_size says |
 *
 * @returns the JSON with the tensors, and the length of the JSON @throws InferError
 */
export function cutMessage({ bytes, isBinary }: ReceivedMessage): { body: Uint8Array; jsonBytes: number } {
  if (!isBinary) return { body: bytes, jsonBytes: bytes.length };
  if (bytes.length < PREFIX_BYTES) {
    throw malformed(
      `a binary message begins with the length of its JSON in ${PREFIX_BYTES} bytes; this one has ${bytes.length}`,
    );
  }
  const body = bytes.subarray(PREFIX_BYTES);
  const jsonBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  if (jsonBytes >= 1 && jsonBytes <= body.length) return { body, jsonBytes };
  throw malformed(
    `the length of the JSON in front of a binary message is ${jsonBytes}; from 1 to ${body.length} is expected`,
  );
}

/** An answer: binary where it has tensors as bytes, else a text. */
export function answerMessage({ content, headers }: InferBody, free: () => void): SentMessage {
  const jsonBytes = headers['inference-header-content-length'];
  if (jsonBytes === undefined || typeof content === 'string') return { content, isBinary: false, free };
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(Number(jsonBytes));
  return { content: [prefix, ...content], isBinary: true, free };
}

/** The end of a request of a decoupled model, after responses none of which was marked as the last. */
export function finalMessage(id: string, model: string, version: string): SentMessage {
  const content = JSON.stringify({
    ...(id === '' ? {} : { id }),
    model_name: model,
    model_version: version,
    parameters: { triton_final_response: true },
    outputs: [],
  });
  return { content, isBinary: false };
}

/** An error, the last message of its request. `code` is the status that HTTP has for it. @param id '': the request had none */
export function errorMessage(id: string, error: unknown): SentMessage {
  const told = { ...(id === '' ? {} : { id }), error: wordsOf(error), code: statusOf(error) };
  return { content: JSON.stringify(told), isBinary: false };
}

/** Bytes of a long answer, which goes out in fragments as it lies in memory. */
const ONE_PIECE = 2 ** 18;

/** The frames of a message, in their order. */
export function framesOf({ content }: SentMessage): readonly (string | Uint8Array)[] {
  if (typeof content === 'string') return [content];
  return lengthOf(content) <= ONE_PIECE ? [Buffer.concat(content)] : content;
}
