import {
  RESPONSE_BEAM,
  RESPONSE_END,
  RESPONSE_ERROR,
  RESPONSE_FINAL,
  RESPONSE_FIRST,
  RESPONSE_INVALID,
  RESPONSE_LOG_PROBS,
  RESPONSE_STREAMING,
  type ResponseBatch,
  type ReturnedTensors,
} from '../../callbacks/response-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { ReturnedLogits } from '../request/returned-logits.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';

type Growable = Int32Array | Float32Array | Float64Array | BigUint64Array | Uint8Array;

/** How a sequence stands in the batch. */
interface SequenceEntry {
  /** Its place among those that are answered; -1: it is the only one. */
  place: number;
  isFinal: boolean;
  /** It is told of for the last time. */
  isEnd: boolean;
  /** With prompt and all output. */
  isWhole: boolean;
  /** Further flags. */
  flags: number;
}

/** Collects the responses of an iteration in arrays that are reused and only grow. */
export class ResponseWriter implements ResponseBatch {
  count = 0;
  requestIds = new BigUint64Array(64);
  flags = new Uint8Array(64);
  finishReasons = new Uint8Array(64);
  sequenceIndexes = new Int32Array(64);
  promptLengths = new Int32Array(64);
  sequenceLengths = new Int32Array(64);
  padIds = new Int32Array(64);
  cachedTokens = new Int32Array(64);
  seeds = new BigUint64Array(64);
  cumLogProbs = new Float64Array(64);
  timesMs = new Float32Array(3 * 64);
  numIterations = new Int32Array(64);
  reuseAndPauses = new Int32Array(3 * 64);
  topWidths = new Int32Array(64);
  tokenStart = new Int32Array(65);
  tokens = new Int32Array(256);
  logProbStart = new Int32Array(65);
  logProbs = new Float32Array(64);
  topTokens = new Int32Array(64);
  topLogProbs = new Float32Array(64);
  errors: [number, string][] = [];
  returned: ReturnedTensors[] = [];
  #numTop = 0;

  clear(): void {
    this.count = 0;
    this.errors = [];
    this.returned = [];
    this.#numTop = 0;
  }

  /** A final response without tensors. `isInvalid`: the request itself is at fault. */
  addError(requestId: bigint, error: string, isInvalid = false): void {
    const index = this.#open(requestId);
    this.flags[index] = RESPONSE_FINAL | RESPONSE_ERROR | (isInvalid ? RESPONSE_INVALID : 0);
    this.errors.push([index, error]);
  }

  /** What of the request has not been sent yet; with a final response of a request that does not stream, everything. */
  add(request: LlmRequest, final: boolean): void {
    if (request.error !== '') {
      this.addError(request.requestId, request.error, request.isInvalid);
      return;
    }
    if (request.beams !== null) {
      this.#addBeams(request, final);
      return;
    }
    const { sequences } = request;
    const { streaming } = request.spec;
    // Where it streams, those that have told all say nothing more; but somebody has to say that it was the last response.
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

  /** All of them whole each time: what they have in common with those of the response before may change. */
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
    const from = isWhole ? 0 : sequence.numSent;
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
      this.#addReturned(index, request.returned, !request.isAnswered);
    }
    sequence.numSent = to;
    sequence.isEndSent = isEnd;
  }

  /**
   * A copy of exactly what is filled, all in one buffer, which may be transferred: that is what a post costs by. Rows
   * of logits are not copied; their buffers belong to nobody else and may be transferred too (see transferables).
   */
  snapshot(): ResponseBatch {
    const { count } = this;
    const perResponse = 3 * 8 + 15 * 4 + 2;
    const numTokens = this.tokenStart[count]!;
    const numLogProbs = this.logProbStart[count]!;
    const into = packer(count * perResponse + 2 * 4 + 4 * (numTokens + numLogProbs + 2 * this.#numTop));
    // In order of size, so that every view is aligned.
    return {
      count,
      requestIds: into(BigUint64Array, this.requestIds, count),
      seeds: into(BigUint64Array, this.seeds, count),
      cumLogProbs: into(Float64Array, this.cumLogProbs, count),
      sequenceIndexes: into(Int32Array, this.sequenceIndexes, count),
      promptLengths: into(Int32Array, this.promptLengths, count),
      sequenceLengths: into(Int32Array, this.sequenceLengths, count),
      padIds: into(Int32Array, this.padIds, count),
      cachedTokens: into(Int32Array, this.cachedTokens, count),
      timesMs: into(Float32Array, this.timesMs, 3 * count),
      numIterations: into(Int32Array, this.numIterations, count),
      reuseAndPauses: into(Int32Array, this.reuseAndPauses, 3 * count),
      topWidths: into(Int32Array, this.topWidths, count),
      tokenStart: into(Int32Array, this.tokenStart, count + 1),
      tokens: into(Int32Array, this.tokens, numTokens),
      logProbStart: into(Int32Array, this.logProbStart, count + 1),
      logProbs: into(Float32Array, this.logProbs, numLogProbs),
      topTokens: into(Int32Array, this.topTokens, this.#numTop),
      topLogProbs: into(Float32Array, this.topLogProbs, this.#numTop),
      flags: into(Uint8Array, this.flags, count),
      finishReasons: into(Uint8Array, this.finishReasons, count),
      errors: this.errors,
      returned: this.returned,
    };
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

  #addReturned(index: number, returned: ReturnedLogits, isFirst: boolean): void {
    this.returned.push({
      index,
      vocabSize: returned.vocabSize,
      context: isFirst ? returned.takeContext() : null,
      generationLogits: returned.returnsGenerationLogits ? returned.takeGeneration() : null,
    });
  }

  #addTokens(index: number, { tokens, numKnown: to }: GeneratedSequence, from: number): void {
    const start = this.tokenStart[index]!;
    const end = start + to - from;
    this.tokens = ensure(this.tokens, end);
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
    this.logProbs = ensure(this.logProbs, end);
    this.logProbs.set(sequence.logProbs.subarray(from, to), start);
    this.logProbStart[index + 1] = end;
    if (width === 0) return;
    const numTop = this.#numTop + (to - from) * width;
    this.topTokens = ensure(this.topTokens, numTop);
    this.topLogProbs = ensure(this.topLogProbs, numTop);
    this.topTokens.set(sequence.topTokens.subarray(from * width, to * width), this.#numTop);
    this.topLogProbs.set(sequence.topLogProbs.subarray(from * width, to * width), this.#numTop);
    this.#numTop = numTop;
  }

  #open(requestId: bigint): number {
    const index = this.count++;
    if (this.count > this.requestIds.length) this.#growResponses();
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

  #growResponses(): void {
    this.requestIds = ensure(this.requestIds, this.count);
    this.flags = ensure(this.flags, this.count);
    this.finishReasons = ensure(this.finishReasons, this.count);
    this.sequenceIndexes = ensure(this.sequenceIndexes, this.count);
    this.promptLengths = ensure(this.promptLengths, this.count);
    this.sequenceLengths = ensure(this.sequenceLengths, this.count);
    this.padIds = ensure(this.padIds, this.count);
    this.cachedTokens = ensure(this.cachedTokens, this.count);
    this.seeds = ensure(this.seeds, this.count);
    this.cumLogProbs = ensure(this.cumLogProbs, this.count);
    this.timesMs = ensure(this.timesMs, 3 * this.requestIds.length);
    this.numIterations = ensure(this.numIterations, this.count);
    this.reuseAndPauses = ensure(this.reuseAndPauses, 3 * this.requestIds.length);
    this.topWidths = ensure(this.topWidths, this.count);
    this.tokenStart = ensure(this.tokenStart, this.requestIds.length + 1);
    this.logProbStart = ensure(this.logProbStart, this.requestIds.length + 1);
  }
}

/** The array itself, or one at least twice as long with its contents, so that it has `length` entries. */
function ensure<T extends Growable>(array: T, length: number): T {
  if (length <= array.length) return array;
  const Constructor = array.constructor as new (length: number) => T;
  const grown = new Constructor(Math.max(length, 2 * array.length));
  (grown as Int32Array).set(array as Int32Array);
  return grown;
}

/** Copies the beginnings of arrays into one buffer, one behind the other, and gives the view on each. */
function packer(byteLength: number) {
  const buffer = new ArrayBuffer(byteLength);
  let offset = 0;
  return <T extends Growable>(
    View: new (buffer: ArrayBuffer, offset: number, length: number) => T,
    source: T,
    length: number,
  ): T => {
    const view = new View(buffer, offset, length);
    (view as Int32Array).set(source.subarray(0, length) as Int32Array);
    offset += view.byteLength;
    return view;
  };
}
