import { BATCHED_POST_PROCESSOR } from '../../callbacks/logits-post-processor.js';
import {
  type PostProcessorCall,
  type PostProcessorRows,
  runPostProcessor,
} from '../../callbacks/post-processor-call.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import type { RequestRows } from '../batch/batch-former.js';
import type { PostProcessors } from '../decoding/post-processors.js';
import type { LlmRequest } from '../request/llm-request.js';

/** Requests of a step whose draws do not count, with the reasons. */
export type RowFailures = Map<LlmRequest, RequestFailure>;

/** A call, and the requests that fail with it. */
interface StageCall extends PostProcessorCall {
  requests: readonly LlmRequest[];
}

/**
 * Work of JavaScript on the logits between the forward of a step and its sampling: runs the post-processors that its
 * requests name. Each gets its own rows, in place. Functions of the host's thread are called together, with one wait.
 */
export class LogitsStage {
  readonly #processors: PostProcessors;
  readonly #timeLimitMs: number;
  readonly #clock: () => number;

  constructor(processors: PostProcessors, timeLimitMs: number, clock: () => number) {
    this.#processors = processors;
    this.#timeLimitMs = timeLimitMs;
    this.#clock = clock;
  }

  /** Changes `logits` [rows x vocabSize] in place; requests whose post-processor failed are added to `failures`. */
  run(users: readonly RequestRows[], logits: Float32Array, vocabSize: number, failures: RowFailures): void {
    const calls = callsOf(users, logits, vocabSize);
    const fail = ({ requests }: StageCall, why: string | null) => {
      if (why === null) return;
      for (const request of requests) failures.set(request, failure('internal', why));
    };
    const { host } = this.#processors;
    const ofHost: StageCall[] = [];
    for (const call of calls) {
      if (host?.names.includes(call.name)) ofHost.push(call);
      else fail(call, runPostProcessor(this.#processors, call, this.#timeLimitMs, this.#clock));
    }
    if (host === null || ofHost.length === 0) return;
    const whys = host.run(ofHost, this.#timeLimitMs);
    for (const [i, call] of ofHost.entries()) fail(call, whys[i]!);
  }
}

/** A call for each request that names a post-processor, and one for all that name the batched one. */
function callsOf(users: readonly RequestRows[], logits: Float32Array, vocabSize: number): StageCall[] {
  const calls: StageCall[] = [];
  const batched: RequestRows[] = [];
  const add = (name: string, users: readonly RequestRows[]) =>
    calls.push({
      name,
      rows: users.map((rows) => rowsOf(rows, logits, vocabSize)),
      requests: users.map(({ request }) => request),
    });
  for (const rows of users) {
    const { postProcessor } = rows.request.spec;
    if (postProcessor === BATCHED_POST_PROCESSOR) batched.push(rows);
    else if (postProcessor !== null) add(postProcessor, [rows]);
  }
  if (batched.length > 0) add(BATCHED_POST_PROCESSOR, batched);
  return calls;
}

function rowsOf(
  { request, firstRow, sequences }: RequestRows,
  logits: Float32Array,
  vocabSize: number,
): PostProcessorRows {
  const { requestId, clientId } = request.spec;
  return {
    requestId,
    clientId,
    tokensPerBeam: sequences.map(({ tokens }) => tokens.slice(0, request.numTokens)),
    view: logits.subarray(firstRow * vocabSize, (firstRow + sequences.length) * vocabSize),
  };
}
