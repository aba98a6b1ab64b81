import { messageOf } from '../base/error-text.js';
import { isObject } from '../base/option-values.js';
import type { JoinedRows } from '../callbacks/joined-rows.js';
import { REQUEST_FIELDS } from '../callbacks/request/fields.js';
import type { RequestFailure } from '../callbacks/request-failure.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import type { TokenRequest } from '../callbacks/token-request.js';
import type { InferenceRequest } from '../callbacks/types.js';
import { AttemptFaults } from './attempt-faults.js';
import { type BroughtAdapter, missingAdapter } from './sent-adapters.js';
import type { SequenceQueues } from './sequence-queues.js';
import { checkTokenFields } from './token-fields.js';
import { tableInputs } from './token-inputs.js';

/** A request of an in-process host from submission to its last piece. */
export interface HostEntry {
  /** As it goes to the engine, without the weights of its adapter and joined rows. */
  request: InferenceRequest;
  /** As it was asked: of later attempts the tokens so far are added. */
  readonly asked: InferenceRequest;
  /** Why no engine can continue it, as the end of a sentence; null: one can. */
  readonly whyNotResumed: string | null;
  readonly faults: AttemptFaults;
  /** Fingerprint of the engine that has it, or had it last; null: none had it yet. */
  engine: string | null;
  /** Sequences of which no more is wanted. */
  readonly left: ReadonlySet<number>;
  /** Null: it brought no weights. */
  adapter: BroughtAdapter | null;
  /** Its embeddings, which each attempt takes along; null: it has none, or they are in `request`. */
  readonly rows: { each: readonly Float32Array[]; joined: Pick<JoinedRows, 'take'> } | null;
  priority: number;
  key: string;
  weight: number;
  cost: number;
  promptLength: number;
  maxNewTokens: number;
  pieces: SequenceQueues;
  isQueued: boolean;
  /** It has not run yet, or is paused; here or in the engine. */
  isWaiting: boolean;
  /** It has run, and was paused since. */
  isPaused: boolean;
  isCancelled: boolean;
  /** True where its consumers have all that they wanted: stopping the engine is then no cancellation. */
  isWhole: boolean;
  timer: NodeJS.Timeout | null;
  label: string;
  /** null: it has none. */
  adapterName: string | null;
  /** Time of submission on performance.now's clock. */
  submittedMs: number;
  /** Times when it first ran, and when its first token came; null: not yet. */
  firstScheduledMs: number | null;
  firstTokenMs: number | null;
  deadlineMs: number;
  release: () => void;
}

/** The entry of a submitted request. @param left see HostEntry @param release called when it has ended */
export function entryOf(
  inference: InferenceRequest,
  request: TokenRequest,
  pieces: SequenceQueues,
  left: ReadonlySet<number>,
  release: () => void,
): HostEntry {
  const { timeLimitMs, loraTaskId: taskId, adapter: weights } = request;
  const { promptEmbeddings: each, joinedEmbeddings: joined } = request;
  const nowMs = performance.now();
  return {
    request: inference,
    asked: inference,
    whyNotResumed:
      request.logitsPostProcessor === undefined
        ? null
        : 'what its logits post-processor has seen of it is not seen again',
    faults: new AttemptFaults(),
    engine: null,
    left,
    adapter: weights === undefined || taskId === undefined ? null : { taskId, weights, wasCarried: false },
    rows: each === undefined || joined === undefined ? null : { each, joined },
    priority: inference.priority ?? REQUEST_FIELDS.priority.default,
    key: request.queueKey ?? '',
    weight: request.queueWeight ?? 1,
    cost: costOf(request),
    promptLength: request.promptTokens.length,
    maxNewTokens: request.maxNewTokens,
    pieces,
    isQueued: true,
    isWaiting: true,
    isPaused: false,
    isCancelled: false,
    isWhole: false,
    timer: null,
    label: request.label ?? '',
    adapterName: taskId === undefined ? null : (request.adapterName ?? String(taskId)),
    submittedMs: nowMs,
    firstScheduledMs: null,
    firstTokenMs: null,
    deadlineMs: nowMs + (timeLimitMs ?? Number.POSITIVE_INFINITY),
    release,
  };
}

/** The request with the embeddings of its prompt, whose memory the engine gets: those of a first attempt are there. */
export function withRows(request: InferenceRequest, { rows }: HostEntry): InferenceRequest {
  if (rows === null) return request;
  return { ...request, inputs: { ...request.inputs, ...tableInputs(rows.each, rows.joined.take()) } };
}

/** Most tokens that a request may take. */
function costOf({ promptTokens, maxNewTokens, numSequences = 1, beams }: TokenRequest): number {
  return promptTokens.length + maxNewTokens * Math.max(numSequences, beams?.width ?? 1);
}

/** Stands for a request of which no field can be relied on, so that its stream can say so. */
const UNREADABLE: TokenRequest = { promptTokens: [], maxNewTokens: 1 };

/**
 * A request as it is now, with its own fields alone: each is read once, so that what was checked is what runs. Where a
 * field cannot be relied on, `fault` says so, and the request is one without a meaning.
 */
export function takenRequest(given: TokenRequest): { request: TokenRequest; fault: unknown } {
  try {
    const request = isObject(given) ? ownFields(given) : given;
    checkTokenFields(request);
    return { request, fault: null };
  } catch (error) {
    return { request: UNREADABLE, fault: error };
  }
}

function ownFields(given: TokenRequest): TokenRequest {
  try {
    return { ...given };
  } catch (error) {
    throw new ParameterError('request', `A field of the request cannot be read: ${messageOf(error)}`);
  }
}

/** The engine asks for tensors; programs that submit requests know fields. */
export function inHostsWords({ request, adapter }: HostEntry, failure: RequestFailure): RequestFailure {
  const taskId = request.inputs.lora_task_id?.data[0];
  const isMissing = failure.kind === 'adapter' && adapter === null && typeof taskId === 'bigint';
  return isMissing ? missingAdapter(taskId) : failure;
}
