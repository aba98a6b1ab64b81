import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Context } from 'hono';
import { codingFor, compressed } from '../web/accept-encoding.js';
import type { AppEnv } from '../web/app-env.js';
import { directAnswer } from '../web/direct-answer.js';
import type { InferBody } from './infer-answer.js';
import { lengthOf } from './json-text.js';

/** Answers shorter than this are not worth the time that it takes to compress them. */
const MIN_COMPRESSED = 1024;
/** Bytes of an answer that is sent in one piece: what is longer would hold the thread while it is put together. */
const ONE_PIECE = 2 ** 18;

/** An answer as it goes to the connection: in one piece, or as a stream, which holds back for a slow reader. */
interface Sendable {
  body: string | Uint8Array<ArrayBuffer> | Readable;
  headers: Record<string, string>;
}

/** The answer, compressed where its client reads that. */
function sendable({ content, headers }: InferBody, acceptEncoding: string | undefined): Sendable {
  const length = typeof content === 'string' ? content.length : lengthOf(content);
  const coding = length < MIN_COMPRESSED ? null : codingFor(acceptEncoding);
  if (coding !== null) {
    const parts = typeof content === 'string' ? [Buffer.from(content)] : content;
    return { body: compressed(parts, coding), headers: { ...headers, 'content-encoding': coding } };
  }
  if (typeof content === 'string') return { body: content, headers };
  if (length <= ONE_PIECE) return { body: Buffer.concat(content), headers };
  const body = Readable.from(content, { objectMode: false });
  return { body, headers: { ...headers, 'content-length': String(length) } };
}

/** The answer as a Response. */
export function inferResponse(c: Context<AppEnv>, answer: InferBody): Response {
  const { body, headers } = sendable(answer, c.req.header('accept-encoding'));
  if (!(body instanceof Readable)) return directAnswer(c, body, headers);
  return new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, { headers });
}

/** Writes the answer to its connection. @throws where the client leaves before all of it is out */
export async function sendAnswer(
  outgoing: ServerResponse,
  answer: InferBody,
  acceptEncoding: string | undefined,
): Promise<void> {
  const { body, headers } = sendable(answer, acceptEncoding);
  if (body instanceof Readable) {
    outgoing.writeHead(200, headers);
    await pipeline(body, outgoing);
    return;
  }
  outgoing.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) });
  outgoing.end(body);
}
