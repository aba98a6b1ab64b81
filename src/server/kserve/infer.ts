import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import type { Context } from 'hono';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';
import { bodyMemory, REQUEST_BYTES } from '../memory-estimates.js';
import { bodyTooLarge, checkedSize } from '../read-json.js';
import type { AppEnv } from '../routes/route.js';
import { malformed } from './errors.js';
import { parseExactJson } from './exact-json.js';
import { inferBody, inferResponse } from './infer-answer.js';
import { type ReadInfer, readInfer } from './read-infer.js';

const INFLATE = { gzip: promisify(gunzip), deflate: promisify(inflate) } as const;

/** POST .../infer: reads the request, has the model answer it, and writes the answer. @throws InferError, ApiError */
export async function infer(c: Context<AppEnv>, model: InferModel, maxBodyBytes: number): Promise<Response> {
  const read = await readRequest(c, maxBodyBytes);
  const response = await answerOf(model, read);
  const body = inferBody(model, read, response);
  c.get('memory').addAnswer(body.bytes.length);
  return inferResponse(body, c.req.header('accept-encoding') ?? '');
}

async function readRequest(c: Context<AppEnv>, maxBodyBytes: number): Promise<ReadInfer> {
  const bytes = await inflated(c, new Uint8Array(await c.req.arrayBuffer()), maxBodyBytes);
  const length = jsonLength(c.req.header('inference-header-content-length'), bytes.length);
  const json = bytes.subarray(0, length);
  c.get('memory').holdBody(REQUEST_BYTES + bytes.length + bodyMemory(length, await checkedSize(json)));
  const text = Buffer.from(json.buffer, json.byteOffset, json.length).toString('utf8');
  return readInfer(parseExactJson(text), bytes.subarray(length), leavingSignal(c));
}

/** Aborted when the client leaves. The library's own signal would make a whole request of the web's kind for it. */
function leavingSignal(c: Context<AppEnv>): AbortSignal {
  const outgoing = c.env?.outgoing;
  if (outgoing === undefined) return c.req.raw.signal;
  const leaving = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) leaving.abort();
  });
  return leaving.signal;
}

/** @throws ApiError 413 where it is longer than a body may be, InferError */
async function inflated(c: Context<AppEnv>, bytes: Uint8Array, maxBodyBytes: number): Promise<Uint8Array> {
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (encoding === 'identity') return bytes;
  if (encoding !== 'gzip' && encoding !== 'deflate') {
    throw new InferError(`unsupported content encoding '${encoding}'; gzip and deflate are taken`, 'invalid');
  }
  try {
    const whole = await INFLATE[encoding](bytes, { maxOutputLength: maxBodyBytes });
    return new Uint8Array(whole.buffer, whole.byteOffset, whole.length);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(maxBodyBytes);
    throw malformed(`failed to decompress the request body, which is said to be ${encoding}`);
  }
}

/** Bytes of the JSON, by its header; without one it is the whole body. */
function jsonLength(header: string | undefined, bodyLength: number): number {
  if (header === undefined) return bodyLength;
  const length = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (length > 0 && length <= bodyLength) return length;
  throw malformed(`inference header size should be in range (0, ${bodyLength}), got: ${header.slice(0, 30)}`);
}

/** The one response of a model. @throws InferError where there is none, or more than one */
function answerOf(model: InferModel, { request }: ReadInfer): Promise<InferResponse> {
  if (model.config.model_transaction_policy.decoupled) {
    throw new InferError(
      `doesn't support models with decoupled transaction policy: '${model.config.name}'`,
      'invalid',
    );
  }
  return new Promise((resolve, reject) => {
    let first: InferResponse | null = null;
    model.infer(request, {
      response: (response) => {
        first ??= response;
      },
      end: () => {
        if (first !== null) resolve(first);
        else
          reject(
            new InferError(
              `the model '${model.config.name}' ended the request without an answer`,
              'internal',
            ),
          );
      },
      fail: reject,
    });
  });
}
