import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'hono';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';
import { bodyMemory, REQUEST_BYTES } from '../memory-estimates.js';
import type { RequestMemory } from '../request-memory.js';
import type { AppEnv } from '../routes/route.js';
import { malformed } from './errors.js';
import { inferBody, inferResponse } from './infer-answer.js';
import { inflatedBody } from './inflate-body.js';
import { bytesOfList, mostBytesOf } from './json-tensors.js';
import { readRawInput } from './raw-input.js';
import { type ReadInfer, readInfer } from './read-infer.js';
import { readRequestJson } from './request-json.js';

/** POST .../infer: reads the request, has the model answer it, and writes the answer. @throws InferError, ApiError */
export async function infer(c: Context<AppEnv>, model: InferModel, maxBodyBytes: number): Promise<Response> {
  const memory = c.get('memory');
  const read = await readRequest(c, model, memory, maxBodyBytes);
  const response = await answerOf(model, read);
  const body = await inferBody(model, read, response, (bytes) => memory.addAnswer(bytes));
  return inferResponse(body, c.req.header('accept-encoding'));
}

async function readRequest(
  c: Context<AppEnv>,
  { config }: InferModel,
  memory: RequestMemory,
  maxBodyBytes: number,
): Promise<ReadInfer> {
  const { signal } = c.req.raw;
  const sent = new Uint8Array(await c.req.arrayBuffer());
  const coding = c.req.header('content-encoding');
  const bytes =
    coding === undefined
      ? sent
      : await inflatedBody(sent, coding, {
          maxBytes: maxBodyBytes,
          hold: (inflated) => memory.holdBody(REQUEST_BYTES + sent.length + inflated),
        });
  const length = jsonLength(c.req.header('inference-header-content-length'), bytes.length);
  if (length === 0) return readRawInput(config, bytes, signal);
  const { value, size, parsedBytes, lists } = await readRequestJson(bytes.subarray(0, length));
  const held = REQUEST_BYTES + bytes.length + bodyMemory(parsedBytes, size);
  memory.holdBody(held);
  const read = readInfer(config.name, { body: value, lists, binary: bytes.subarray(length), signal });
  await readLists(read, (listBytes) => memory.holdBody(held + listBytes));
  return read;
}

/** Reads the inputs whose lists were too long to be parsed with the rest. @throws InferError */
async function readLists({ unread }: ReadInfer, hold: (bytes: number) => void): Promise<void> {
  if (unread.length === 0) return;
  const wanted = unread.map(({ tensor: { name, datatype }, count }) => ({ name, datatype, count }));
  hold(unread.reduce((sum, { list }, i) => sum + mostBytesOf(wanted[i]!, list), 0));
  for (const [i, { tensor, list }] of unread.entries()) {
    tensor.data = await bytesOfList(wanted[i]!, list);
    await nextTurn();
  }
}

/** Bytes of the JSON, by its header; without one it is the whole body. 0: there is none. @throws InferError */
function jsonLength(header: string | undefined, bodyLength: number): number {
  if (header === undefined) return bodyLength;
  const length = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (length <= bodyLength) return length;
  throw malformed(`inference header size should be in range (0, ${bodyLength}), got: ${header.slice(0, 30)}`);
}

/** The one response of a model. @throws InferError where there is none, or more than one */
function answerOf(model: InferModel, { request }: ReadInfer): Promise<InferResponse> {
  const { name, model_transaction_policy: policy } = model.config;
  if (policy.decoupled) {
    throw malformed(`doesn't support models with decoupled transaction policy: '${name}'`);
  }
  return new Promise((resolve, reject) => {
    let first: InferResponse | null = null;
    model.infer(request, {
      response: (response) => {
        first ??= response;
      },
      end: () => {
        if (first !== null) resolve(first);
        else reject(new InferError(`the model '${name}' ended the request without an answer`, 'internal'));
      },
      fail: reject,
    });
  });
}
