import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferResponse, InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { InferModel } from '../../serving/infer-model.js';
import { bodyMemory, REQUEST_BYTES } from '../memory-estimates.js';
import type { RequestMemory } from '../request-memory.js';
import { malformed } from './errors.js';
import { type InferBody, inferBody } from './infer-answer.js';
import { inflatedBody } from './inflate-body.js';
import { bytesOfList, mostBytesOf } from './json-tensors.js';
import { readRawInput } from './raw-input.js';
import { type ReadInfer, readInfer } from './read-infer.js';
import { readRequestJson } from './request-json.js';
import { nextTurn } from './turns.js';

/** A request for tensors as it came. */
export interface SentInfer {
  /** The body as it was sent, compressed or not. */
  body: Uint8Array;
  contentEncoding: string | undefined;
  /** The header Inference-Header-Content-Length. */
  jsonLength: string | undefined;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
  /** Name of its API key; '' where the server has none. */
  owner: string;
  memory: RequestMemory;
  terms: InferTerms;
  /** Bytes of the longest body, inflated. */
  maxBodyBytes: number;
  /** The span of the HTTP request; undefined: it is not traced. */
  trace: TraceSpan | undefined;
}

/** Reads a request, has the model answer it, and makes the answer's body. @throws InferError, ApiError */
export async function answerInfer(model: InferModel, sent: SentInfer): Promise<InferBody> {
  const { request, ...form } = await readRequest(model, sent);
  const read = { ...form, request: { ...request, takesOne: true as const, terms: sent.terms } };
  refuseAdapter(model, read);
  const response = await answerOf(model, read, sent);
  return inferBody(model, read, response, (bytes) => sent.memory.addAnswer(bytes));
}

async function readRequest(
  { config }: InferModel,
  { body, contentEncoding, jsonLength, signal, memory, maxBodyBytes }: SentInfer,
): Promise<ReadInfer> {
  const bytes =
    contentEncoding === undefined
      ? body
      : await inflatedBody(body, contentEncoding, {
          maxBytes: maxBodyBytes,
          hold: (inflated) => memory.holdBody(REQUEST_BYTES + body.length + inflated),
        });
  const length = lengthOfJson(jsonLength, bytes.length);
  if (length === 0) return readRawInput(config, bytes, signal);
  const { value, size, parsedBytes, lists } = await readRequestJson(bytes.subarray(0, length), signal);
  const held = REQUEST_BYTES + bytes.length + bodyMemory(parsedBytes, size);
  memory.holdBody(held);
  const read = readInfer(config.name, { body: value, lists, binary: bytes.subarray(length), signal });
  await readLists(read, (listBytes) => memory.holdBody(held + listBytes));
  return read;
}

/** Reads the inputs whose lists were too long to be parsed with the rest. @throws InferError */
async function readLists(
  { unread, request: { signal } }: ReadInfer,
  hold: (bytes: number) => void,
): Promise<void> {
  if (unread.length === 0) return;
  const wanted = unread.map(({ tensor: { name, datatype }, count }) => ({ name, datatype, count }));
  hold(unread.reduce((sum, { list }, i) => sum + mostBytesOf(wanted[i]!, list), 0));
  for (const [i, { tensor, list }] of unread.entries()) {
    tensor.data = await bytesOfList(wanted[i]!, list, signal);
    await nextTurn(signal);
  }
}

/** Bytes of the JSON, by its header; without one it is the whole body. 0: there is none. @throws InferError */
function lengthOfJson(header: string | undefined, bodyLength: number): number {
  if (header === undefined) return bodyLength;
  const length = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (length <= bodyLength) return length;
  throw malformed(`inference header size should be in range (0, ${bodyLength}), got: ${header.slice(0, 30)}`);
}

/** A client that names an adapter wants other answers than it would get. @throws InferError where nobody would read the name */
function refuseAdapter({ config, ignoresParameters }: InferModel, { request }: ReadInfer): void {
  if (ignoresParameters !== true || !Object.hasOwn(request.parameters, 'lora_name')) return;
  throw malformed(
    `parameter 'lora_name' is for models that generate text; '${config.name}' takes no LoRA adapters`,
  );
}

/** The one response of a model. @throws InferError where there is none, or more than one */
function answerOf(
  model: InferModel,
  { request }: ReadInfer,
  { owner, trace }: Pick<SentInfer, 'owner' | 'trace'>,
): Promise<InferResponse> {
  const { name, model_transaction_policy: policy } = model.config;
  if (policy.decoupled) {
    throw malformed(`doesn't support models with decoupled transaction policy: '${name}'`);
  }
  return new Promise((resolve, reject) => {
    let first: InferResponse | null = null;
    model.infer(
      { ...request, owner, ...(trace && { trace }) },
      {
        response: (response) => {
          first ??= response;
        },
        end: () => {
          if (first !== null) resolve(first);
          else reject(new InferError(`the model '${name}' ended the request without an answer`, 'internal'));
        },
        fail: reject,
      },
    );
  });
}
