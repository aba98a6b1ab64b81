import type { IncomingHttpHeaders } from 'node:http2';
import { GrpcError } from './status.js';

/** Milliseconds of a unit of grpc-timeout. */
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Milliseconds that the client waits for its answer; null: it does not say. Source: gRPC over HTTP/2, "Timeout": at most eight
 * digits and a unit. @throws GrpcError for anything else
 */
export function timeoutMsOf(headers: IncomingHttpHeaders): number | null {
  const text = headers['grpc-timeout'];
  if (text === undefined) return null;
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(String(text)) ?? [];
  if (digits === undefined) {
    throw new GrpcError('INVALID_ARGUMENT', 'grpc-timeout is wrong: up to 8 digits and a unit are expected');
  }
  return Number(digits) * UNIT_MS[unit!]!;
}

/** A header that may have come several times, as one text. */
export function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

/** Supported message compressions besides none. */
const CODINGS = ['gzip', 'deflate'] as const;
export type Coding = (typeof CODINGS)[number];

function codingOf(text: string): Coding | null {
  return CODINGS.find((coding) => coding === text) ?? null;
}

/**
 * The compression of the messages that a client marks as compressed; null: none, since it sends none so.
 * @throws GrpcError for one that there is not
 */
export function messageCoding(headers: IncomingHttpHeaders): Coding | null {
  const text = headerText(headers['grpc-encoding']) ?? 'identity';
  const coding = codingOf(text);
  if (coding !== null || text === 'identity') return coding;
  throw new GrpcError(
    'UNIMPLEMENTED',
    `messages compressed with '${text.slice(0, 30)}' are not supported: identity, gzip and deflate are`,
  );
}

/** A client that compresses its own messages, and reads such, is answered so. */
export function answerCoding(headers: IncomingHttpHeaders): Coding | null {
  const own = codingOf(headerText(headers['grpc-encoding']) ?? '');
  const taken = headerText(headers['grpc-accept-encoding']) ?? '';
  const isTaken = taken.split(',').some((name) => name.trim() === own);
  return isTaken ? own : null;
}

/** Bytes of a message of a status as it is sent: clients take a few thousand of all metadata together. */
const LONGEST_MESSAGE = 4096;
const PLAIN = /^[\x20-\x24\x26-\x7e]*$/;

/**
 * A text as a header has it: bytes that are no visible ASCII, and %, as %XX; so are spaces at its ends, which HTTP/2 has not in
 * the value of a header. Source: gRPC over HTTP/2, "Status-Message".
 */
export function percentEncoded(text: string): string {
  if (PLAIN.test(text) && text.length <= LONGEST_MESSAGE && text.trim() === text) return text;
  const inner = text.trim();
  const start = text.indexOf(inner);
  let encoded = '';
  let at = 0;
  for (const character of text) {
    const isAtEdge = at < start || at >= start + inner.length;
    const next = !isAtEdge && PLAIN.test(character) ? character : escaped(character);
    if (encoded.length + next.length > LONGEST_MESSAGE - 3) return `${encoded}...`;
    encoded += next;
    at += character.length;
  }
  return encoded;
}

function escaped(character: string): string {
  // Half a pair has no UTF-8; Buffer writes U+FFFD in its place.
  return Array.from(
    Buffer.from(character),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');
}
