import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { DEFAULT_MAX_BODY_BYTES } from '../../src/server/web/bodies/read-json.js';
import type { DearRequest } from './measure.js';

const COMPRESS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 9 }),
  deflate: (bytes) => deflateSync(bytes, { level: 9 }),
  br: (bytes) => brotliCompressSync(bytes),
};

/** The shortest of a member that holds nothing: a body of many of them is long work, and no text. */
const EMPTY_MEMBER = gzipSync('');

/** Bodies that cost their sender little: those that become as long as a body may be, ten times that, or nothing. */
export function dearBodies(path: string): DearRequest[] {
  const bodies = Object.entries(COMPRESS).flatMap(([coding, compress]) => [
    compressed(path, coding, 'as long as a body may be', compress(spaces(DEFAULT_MAX_BODY_BYTES - 2))),
    compressed(path, coding, 'a bomb', compress(spaces(10 * DEFAULT_MAX_BODY_BYTES))),
  ]);
  const members = Buffer.alloc(EMPTY_MEMBER.length * 200_000, EMPTY_MEMBER);
  return [...bodies, compressed(path, 'gzip', '200,000 members that hold nothing', members)];
}

function spaces(bytes: number): Buffer {
  return Buffer.concat([Buffer.alloc(bytes, ' '), Buffer.from('{}')]);
}

/** What is inflated counts like a body that was sent, up to the limit of a body. */
function compressed(path: string, coding: string, what: string, body: Buffer): DearRequest {
  return {
    name: `${path} in ${coding}: ${what}`,
    path,
    body,
    takenBytes: DEFAULT_MAX_BODY_BYTES,
    contentEncoding: coding,
    isLong: false,
  };
}
