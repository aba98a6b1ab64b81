import type { InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import { malformed } from '../../serving/infer-failure.js';
import type { InferModel } from '../../serving/infer-model.js';
import { askOnce } from '../../serving/protocol/ask-once.js';
import { refuseAdapter, refuseEngine } from '../../serving/protocol/known-fields.js';
import type { RegionAccess } from '../../serving/protocol/region-access.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import { bodyMemory, REQUEST_BYTES } from '../web/memory/memory-estimates.js';
import type { RequestMemory } from '../web/memory/request-memory.js';
import { type InferBody, inferBody } from './infer-answer.js';
import { bytesOfList, mostBytesOf } from './json-tensors.js';
import { readRawInput } from './raw-input.js';
import { type ReadInfer, readInfer } from './read-infer.js';
import { type RequestJson, readRequestJson } from './request-json.js';

/** A request for tensors as it came. */
export interface SentInfer {
  /** The body, inflated where it came compressed. */
  body: Uint8Array;
  /** The header Inference-Header-Content-Length. */
  jsonLength: string | undefined;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
  /** Name of its API key; '' where the server has none. */
  owner: string;
  memory: RequestMemory;
  terms: InferTerms;
  /** Shared memory that this client may name. */
  regions: RegionAccess;
  /** The span of the HTTP request; undefined: it is not traced. */
  trace: TraceSpan | undefined;
}

/** Reads a request, has the model answer it, and makes the answer's body. @throws InferError, ApiError */
export async function answerInfer(model: InferModel, sent: SentInfer): Promise<InferBody> {
  try {
    const read = await readRequest(model, sent);
    refuseAdapter(model, read.request);
    refuseEngine(model, sent.terms.engine);
    refuseDecoupled(model);
    const response = await askOnce(model, {
      ...read.request,
      owner: sent.owner,
      terms: sent.terms,
      trace: sent.trace,
    });
    return await inferBody(model, read, response, (bytes) => sent.memory.addAnswer(bytes));
  } finally {
    sent.regions.release();
  }
}

async function readRequest({ config }: InferModel, sent: SentInfer): Promise<ReadInfer> {
  const { body, jsonLength, signal } = sent;
  const length = lengthOfJson(jsonLength, body.length);
  if (length === 0) return readRawInput(config, body, signal);
  return readParsed(config.name, await parseInfer({ ...sent, jsonBytes: length }), sent);
}

/** A request whose JSON is parsed, and nothing else of it read. */
export interface ParsedInfer extends Pick<RequestJson, 'value' | 'lists'> {
  /** Everything after the JSON. */
  binary: Uint8Array;
  /** Bytes of memory that are held for it. */
  held: number;
}

/**
 * Parses the JSON of a request, and holds the memory for the request.
 * @param sent `jsonBytes`: the length of the JSON at the beginning of the body @throws InferError, ApiError
 */
export async function parseInfer({
  body,
  jsonBytes,
  signal,
  memory,
}: Pick<SentInfer, 'body' | 'signal' | 'memory'> & { jsonBytes: number }): Promise<ParsedInfer> {
  const { value, size, parsedBytes, lists } = await readRequestJson(body.subarray(0, jsonBytes), signal);
  const held = REQUEST_BYTES + body.length + bodyMemory(parsedBytes, size);
  memory.holdBody(held);
  return { value, lists, binary: body.subarray(jsonBytes), held };
}

/** Reads the tensors of a request. @param model its name, for refusals @throws InferError, ApiError */
export async function readParsed(
  model: string,
  { value, lists, binary, held }: ParsedInfer,
  { signal, memory, regions }: Pick<SentInfer, 'signal' | 'memory' | 'regions'>,
): Promise<ReadInfer> {
  const read = readInfer(model, { body: value, lists, binary, regions, signal });
  const heldMore = await readShared(read, (sharedBytes) => memory.holdBody(held + sharedBytes));
  await readLists(read, (listBytes) => memory.holdBody(held + heldMore + listBytes));
  return read;
}

/** Reads the inputs that lie in shared memory. Resolves with their bytes. @throws InferError */
async function readShared({ shared }: ReadInfer, hold: (bytes: number) => void): Promise<number> {
  const bytes = shared.reduce((sum, { span }) => sum + span.byteSize, 0);
  if (bytes > 0) hold(bytes);
  for (const { tensor, span } of shared) tensor.data = await span.read();
  return bytes;
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

/** @throws InferError for a model that may give any number of responses, for which the protocol has no form */
function refuseDecoupled({ config: { name, model_transaction_policy: policy } }: InferModel): void {
  if (policy.decoupled) {
    throw malformed(`doesn't support models with decoupled transaction policy: '${name}'`);
  }
}
