import { columnHolder } from '../../base/columns.js';
import { isRequestsFault, type RequestFailure } from '../../callbacks/request-failure.js';
import {
  type FailedResponse,
  RESPONSE_BEAM,
  RESPONSE_END,
  RESPONSE_ERROR,
  RESPONSE_FINAL,
  RESPONSE_FIRST,
  RESPONSE_INVALID,
  RESPONSE_LOG_PROBS,
  RESPONSE_PROGRESS,
  RESPONSE_STREAMING,
  RESPONSE_TABLE,
  type ResponseBatch,
  type ReturnedTensors,
} from '../../callbacks/response-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { ReturnedLogits } from '../request/returned-logits.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';

/** State of a sequence in the batch. */
interface SequenceEntry {
  /** Its index among the answered sequences; -1: it is the only one. */
  place: number;
  isFinal: boolean;
  /** True if this is its last entry. */
  isEnd: boolean;
  /** True if the entry has the prompt and all output. */
  isWhole: boolean;
  /** Further flags. */
  flags: number;
}

/** Initial room of the arrays, before any has to grow. */
const FIRST_ROOM = { response: 64, token: 256, logProb: 64, topEntry: 64 };

/** Collects the responses of an iteration in arrays that are reused and only grow. */
export class ResponseWriter extends columnHolder(RESPONSE_TABLE) implements ResponseBatch {
  count = 0;
  errors: FailedResponse[] = [];
  returned: ReturnedTensors[] = [];
  #numTop = 0;

  constructor() {
    super(FIRST_ROOM);
  }

  clear(): void {
    this.count = 0;
    this.errors = [];
    this.returned = [];
    this.#numTop = 0;
  }

  /** Adds a final response without tensors. */
  addError(requestId: bigint, failure: RequestFailure): void {
    const index = this.#open(requestId);
    this.flags[index] =
      RESPONSE_FINAL | RESPONSE_ERROR | (isRequestsFault(failure.kind) ? RESPONSE_INVALID : 0);
    this.errors.push({ index, ...failure });
  }

  /**
   * Adds all of the request that has not been sent yet, how far its prompt is in front of its tokens; with a final response of a request that does not stream,
   * everything.
   */
  add(request: LlmRequest, final: boolean): void {
    if (request.failure !== null) {
      this.addError(request.requestId, request.failure);
      return;
    }
    if (request.hasProgress) this.#addProgress(request);
    if (request.beams !== null) {
      this.#addBeams(request, final);
      return;
    }
    const { sequences } = request;
    const { streaming } = request.spec;
    // When streaming, sequences without news are left out; but some sequence has to carry the mark of the last response.
    const told = streaming ? sequences.findLastIndex((sequence) => request.isNews(sequence)) : -1;
    const last = told < 0 ? sequences.length - 1 : told;
    for (const [place, sequence] of sequences.entries()) {
      const isFinal = final && place === last;
      if (streaming && !isFinal && !request.isNews(sequence)) continue;
      const entry = { place: sequences.length === 1 ? -1 : place, isFinal, isWhole: !streaming, flags: 0 };
      this.#addSequence(request, sequence, {
        ...entry,
        isEnd: isFinal || (entry.place >= 0 && sequence.isFinished),
      });
      request.isAnswered = true;
    }
  }

  #addProgress(request: LlmRequest): void {
    const { firstScheduledMs, lastContextMs } = request.timing;
    const index = this.#open(request.requestId);
    this.flags[index] = RESPONSE_PROGRESS;
    this.sequenceLengths[index] = request.contextDone;
    this.cachedTokens[index] = request.cachedTokens;
    this.timesMs[3 * index] = lastContextMs - firstScheduledMs;
    request.contextTold = request.contextDone;
  }

  /** Adds every beam whole each time: beams of the response before may have changed. */
  #addBeams(request: LlmRequest, final: boolean): void {
    for (const [place, sequence] of request.sequences.entries()) {
      this.#addSequence(request, sequence, {
        place,
        isFinal: final,
        isEnd: final,
        isWhole: true,
        flags: RESPONSE_BEAM,
      });
      request.isAnswered = true;
    }
    request.beams?.noteReported();
  }

  #addSequence(
    request: LlmRequest,
    sequence: GeneratedSequence,
    { place, isFinal, isEnd, isWhole, flags }: SequenceEntry,
  ): void {
    const { spec } = request;
    const index = this.#open(request.requestId);
    const from = isWhole ? sequence.numFromElsewhere : sequence.numSent;
    const to = sequence.numGenerated;
    this.flags[index] =
      flags |
      (isFinal ? RESPONSE_FINAL : 0) |
      (isEnd ? RESPONSE_END : 0) |
      (request.isAnswered ? 0 : RESPONSE_FIRST) |
      (isWhole ? 0 : RESPONSE_STREAMING) |
      (request.reportsLogProbs ? RESPONSE_LOG_PROBS : 0);
    this.finishReasons[index] = sequence.finishReason;
    this.sequenceIndexes[index] = place;
    this.promptLengths[index] = request.originalPromptLength;
    this.sequenceLengths[index] = request.originalPromptLength + to;
    this.padIds[index] = spec.padId;
    this.cachedTokens[index] = request.cachedTokens;
    this.seeds[index] = spec.sampling.seed;
    this.cumLogProbs[index] = sequence.cumLogProb;
    this.topWidths[index] = spec.topLogProbs;
    if (isEnd) this.#addTiming(index, request);
    this.#addTokens(index, sequence, isWhole ? 0 : request.originalPromptLength + from);
    if (request.reportsLogProbs) this.#addLogProbs(index, sequence, { from, to, width: spec.topLogProbs });
    if (request.returned !== null && place <= 0) {
      this.#addReturned(index, request, request.returned);
    }
    sequence.numSent = to;
    sequence.isEndSent = isEnd;
  }

  /**
   * A copy of exactly the filled part, in one buffer, which may be transferred: the cost of a post depends on the
   * number of buffers. Rows of logits are not copied; their buffers have no other owner and may be
   * transferred too (see transferables).
   */
  snapshot(): ResponseBatch {
    const { count, errors, returned } = this;
    const token = this.tokenStart[count]!;
    const logProb = this.logProbStart[count]!;
    const copies = RESPONSE_TABLE.copy(this, { response: count, token, logProb, topEntry: this.#numTop });
    return Object.assign(copies, { count, errors, returned });
  }

  #addTiming(index: number, request: LlmRequest): void {
    const { timing, reusedBlocks, missedBlocks, numPauses } = request;
    const { arrivalMs, firstScheduledMs, firstTokenMs, lastTokenMs } = timing;
    const times = [firstScheduledMs, firstTokenMs, lastTokenMs];
    for (const [i, time] of times.entries()) {
      this.timesMs[3 * index + i] = Number.isNaN(time) ? -1 : time - arrivalMs;
    }
    this.numIterations[index] = timing.numIterations;
    this.reuseAndPauses.set([reusedBlocks, missedBlocks, numPauses], 3 * index);
  }

  #addReturned(index: number, request: LlmRequest, returned: ReturnedLogits): void {
    const generation = () =>
      request.beams === null ? returned.takeGeneration() : [returned.ofBeams(request.sequences)];
    this.returned.push({
      index,
      vocabSize: returned.vocabSize,
      context: request.isAnswered ? null : returned.takeContext(),
      generationLogits: returned.returnsGenerationLogits ? generation() : null,
    });
  }

  #addTokens(index: number, { tokens, numKnown: to }: GeneratedSequence, from: number): void {
    const start = this.tokenStart[index]!;
    const end = start + to - from;
    if (end > this.tokens.length) RESPONSE_TABLE.grow(this, 'token', end);
    for (let i = from; i < to; i++) this.tokens[start + i - from] = tokens[i]!;
    this.tokenStart[index + 1] = end;
  }

  #addLogProbs(
    index: number,
    sequence: GeneratedSequence,
    { from, to, width }: { from: number; to: number; width: number },
  ): void {
    const start = this.logProbStart[index]!;
    const end = start + to - from;
    if (end > this.logProbs.length) RESPONSE_TABLE.grow(this, 'logProb', end);
    this.logProbs.set(sequence.logProbs.subarray(from, to), start);
    this.logProbStart[index + 1] = end;
    if (width === 0) return;
    const numTop = this.#numTop + (to - from) * width;
    if (numTop > this.topTokens.length) RESPONSE_TABLE.grow(this, 'topEntry', numTop);
    this.topTokens.set(sequence.topTokens.subarray(from * width, to * width), this.#numTop);
    this.topLogProbs.set(sequence.topLogProbs.subarray(from * width, to * width), this.#numTop);
    this.#numTop = numTop;
  }

  #open(requestId: bigint): number {
    const index = this.count++;
    if (this.count > this.requestIds.length) RESPONSE_TABLE.grow(this, 'response', this.count);
    this.requestIds[index] = requestId;
    this.finishReasons[index] = 0;
    this.sequenceIndexes[index] = -1;
    this.topWidths[index] = 0;
    if (index === 0) {
      this.tokenStart[0] = 0;
      this.logProbStart[0] = 0;
    }
    this.tokenStart[index + 1] = this.tokenStart[index]!;
    this.logProbStart[index + 1] = this.logProbStart[index]!;
    return index;
  }
}
