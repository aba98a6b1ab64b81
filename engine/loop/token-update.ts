import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import type { IterationPlanner } from '../iteration-planner.js';
import { ROW_NO_TOKEN_LEFT, ROW_OK, type SamplingOutput } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { DraftStage } from './draft-stage.js';
import type { FlightRecorder } from './flight-recorder.js';
import type { EndedCall } from './iteration.js';
import type { IterationCounts } from './loop-statistics.js';

/** Results of a call for one request. */
interface DrawnForRequest {
  output: SamplingOutput;
  firstRow: number;
  /** Number of rows for one position: one for each of the request's sequences. */
  numRows: number;
  /** True if the step ended its context. */
  wasContext: boolean;
}

/** Updates requests after a call: ends chunks, appends drawn tokens, and evaluates the stop conditions. */
export class TokenUpdate {
  readonly #planner: IterationPlanner;
  readonly #drafts: DraftStage | null;
  readonly #recorder: FlightRecorder;
  readonly #clock: () => number;

  constructor(
    planner: IterationPlanner,
    drafts: DraftStage | null,
    recorder: FlightRecorder,
    clock: () => number,
  ) {
    this.#planner = planner;
    this.#drafts = drafts;
    this.#recorder = recorder;
    this.#clock = clock;
  }

  /** Updates the requests of a call; null: no call has ended. */
  apply(ended: EndedCall | null): void {
    if (ended === null || ended.output === null) return;
    const { chunks, iteration, output, failures, late } = ended;
    let firstRow = 0;
    const nowMs = this.#clock();
    for (const { request } of chunks) {
      if (request.failure !== null) continue;
      const numRows = request.rows.length;
      const { draftLength } = request;
      if (late.has(request)) {
        this.#dropDraft(request, request.numTokens);
        firstRow += numRows + draftLength;
        continue;
      }
      const wasContext = request.phase === 'context';
      if (wasContext) {
        request.finishChunk();
        request.timing.lastContextMs = nowMs;
      }
      const failed = failures.get(request);
      if (failed !== undefined) request.failure = failed;
      else if (numRows > 0)
        this.#take(request, { output, firstRow, numRows, wasContext }, iteration.counts, nowMs);
      firstRow += numRows + draftLength;
    }
    this.#drafts?.noteRows(ended);
  }

  /** Takes the draft's tokens as far as they equal the drawn ones, and the token drawn after them. */
  #take(request: LlmRequest, drawn: DrawnForRequest, counts: IterationCounts, nowMs: number): void {
    const { output, firstRow, numRows } = drawn;
    const accepted = request.numAccepted(output, firstRow);
    const { lastTokenMs } = request.timing;
    let taken = 0;
    for (; taken <= accepted && !request.isComplete; taken++) {
      const first = firstRow + taken;
      const status = request.beams
        ? failureOfBeams(output, first, numRows)
        : firstFailure(output, first, numRows);
      if (status === ROW_OK) this.#append(request, { ...drawn, firstRow: first }, nowMs);
      else request.failure = noToken(status, request);
      if (status === ROW_OK) counts.generatedTokens += numRows;
    }
    this.#noteTimes(request, taken, lastTokenMs, nowMs);
    if (request.draftLength === 0) return;
    noteAcceptance(counts, request.draftLength, Math.min(taken, accepted));
    this.#drafts?.noteVerified(request, request.draftLength, accepted);
    this.#dropDraft(request, request.numVerified);
  }

  /** Drops the draft's tokens except the first `kept`. */
  #dropDraft(request: LlmRequest, kept: number): void {
    this.#planner.rejectDraft(request, kept);
    request.draftLength = 0;
  }

  /** Records times, except for tokens that were known before, which have none. */
  #noteTimes({ timing }: LlmRequest, taken: number, beforeMs: number, nowMs: number): void {
    if (timing.lastTokenMs !== nowMs) return;
    if (Number.isNaN(beforeMs)) this.#recorder.noteFirstToken(nowMs - timing.arrivalMs, nowMs);
    else this.#recorder.noteTokens(taken, nowMs - beforeMs, nowMs);
  }

  #append(request: LlmRequest, { output, firstRow, wasContext }: DrawnForRequest, nowMs: number): void {
    request.numVerified = request.numTokens;
    if (wasContext) this.#planner.keep(request);
    const { newTokens, parents } = request.append(output, firstRow, wasContext);
    if (newTokens > 0) request.timing.noteToken(nowMs);
    if (parents !== null) this.#planner.fork(request, parents);
  }
}

/** Counts a verified draft of this length, of which the first tokens were accepted. */
function noteAcceptance(counts: IterationCounts, draftLength: number, accepted: number): void {
  counts.acceptedDraftTokens += accepted;
  const { acceptedByPosition } = counts;
  while (acceptedByPosition.length < draftLength) acceptedByPosition.push(0);
  for (let position = 0; position < accepted; position++) acceptedByPosition[position]!++;
}

function firstFailure({ status }: SamplingOutput, first: number, count: number): number {
  for (let row = first; row < first + count; row++) if (status[row] !== ROW_OK) return status[row]!;
  return ROW_OK;
}

/**
 * Status of a request with beams: a beam without any possible token ends; the others go on as long as there are some.
 */
function failureOfBeams(output: SamplingOutput, first: number, count: number): number {
  const statuses = output.status.subarray(first, first + count);
  const broken = statuses.find((status) => status !== ROW_OK && status !== ROW_NO_TOKEN_LEFT);
  return broken ?? (statuses.includes(ROW_OK) ? ROW_OK : ROW_NO_TOKEN_LEFT);
}

/** Why a row has no token: the request is at fault where its bans leave none, the model or a post-processor elsewhere. */
function noToken(status: number, request: LlmRequest): RequestFailure {
  const { numTokens, originalPromptLength, spec } = request;
  if (status === ROW_NO_TOKEN_LEFT) {
    const what = spec.guide === null ? 'The biases and bans' : 'The guide and what else bans tokens';
    const place = numTokens - originalPromptLength + 1;
    return failure('noToken', `${what} of this request leave no token for place ${place} of the answer.`);
  }
  const after = spec.postProcessor === null ? '' : ` after the logits post-processor ${spec.postProcessor}`;
  return failure(
    'internal',
    `The logits for token ${numTokens} of this request are not finite${after} (NaN or all -infinity).`,
  );
}
