import { isGreedy, needsHistory } from '../../callbacks/sampling-params.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';
import { draftLogitsAt } from '../speculation/draft-logits.js';
import type { DraftRow, RowBias, SamplingBatch, TokenMasks } from './sampling-batch.js';

/** The SamplingBatch of the loop: allocated once, filled row by row in each iteration. */
export class SamplingRows implements SamplingBatch {
  numRows = 0;
  readonly temperature: Float32Array;
  readonly topK: Int32Array;
  readonly topP: Float32Array;
  readonly minP: Float32Array;
  readonly repetitionPenalty: Float32Array;
  readonly presencePenalty: Float32Array;
  readonly frequencyPenalty: Float32Array;
  readonly seed: BigUint64Array;
  readonly sequenceIndex: Int32Array;
  readonly position: Int32Array;
  readonly noRepeatNgramSize: Int32Array;
  /** Set where a row of the batch has a guide. */
  tokenMasks: TokenMasks | null = null;
  /** Empty in most iterations. */
  readonly biases: RowBias[] = [];
  /** Empty in most iterations. */
  readonly draftRows: DraftRow[] = [];
  readonly bannedStart: Int32Array;
  readonly numTopLogProbs: Int32Array;
  readonly listsCandidates: Int32Array;
  readonly historyStart: Int32Array;
  readonly historyPromptLength: Int32Array;
  #banned: Int32Array;
  #history: Int32Array;

  /** `expectedHistory`: most tokens that all rows' histories hold together where there are no drafts. */
  constructor(maxRows: number, expectedHistory: number) {
    this.temperature = new Float32Array(maxRows);
    this.topK = new Int32Array(maxRows);
    this.topP = new Float32Array(maxRows);
    this.minP = new Float32Array(maxRows);
    this.repetitionPenalty = new Float32Array(maxRows);
    this.presencePenalty = new Float32Array(maxRows);
    this.frequencyPenalty = new Float32Array(maxRows);
    this.seed = new BigUint64Array(maxRows);
    this.sequenceIndex = new Int32Array(maxRows);
    this.position = new Int32Array(maxRows);
    this.noRepeatNgramSize = new Int32Array(maxRows);
    this.bannedStart = new Int32Array(maxRows + 1);
    this.numTopLogProbs = new Int32Array(maxRows);
    this.listsCandidates = new Int32Array(maxRows);
    this.historyStart = new Int32Array(maxRows + 1);
    this.#history = new Int32Array(expectedHistory);
    this.historyPromptLength = new Int32Array(maxRows);
    this.#banned = new Int32Array(4 * maxRows);
  }

  /** Another array once the rows ban more than it holds: how much that is only the requests know. */
  get banned(): Int32Array {
    return this.#banned;
  }

  /** Another array once drafts, each token of which repeats the history before it, need more than it holds. */
  get history(): Int32Array {
    return this.#history;
  }

  clear(): void {
    this.numRows = 0;
    this.biases.length = 0;
    this.draftRows.length = 0;
    this.tokenMasks = null;
  }

  /**
   * Appends the row that draws a token of one of the request's sequences: the next one, or the one behind the `ahead`
   * first tokens of its draft, which then count as if they had been generated.
   */
  add(request: LlmRequest, sequence: GeneratedSequence, ahead = 0): void {
    const row = this.numRows++;
    const { sampling, topLogProbs, bias } = request.spec;
    this.temperature[row] = isGreedy(sampling) ? 0 : sampling.temperature;
    this.topK[row] = sampling.topK;
    this.topP[row] = sampling.topP;
    this.minP[row] = sampling.minP;
    this.repetitionPenalty[row] = sampling.repetitionPenalty;
    this.presencePenalty[row] = sampling.presencePenalty;
    this.frequencyPenalty[row] = sampling.frequencyPenalty;
    this.seed[row] = sampling.seed;
    this.sequenceIndex[row] = request.spec.firstSequenceIndex + sequence.index;
    const length = request.numTokens + ahead;
    this.position[row] = length;
    this.noRepeatNgramSize[row] = sampling.noRepeatNgramSize;
    this.numTopLogProbs[row] = request.beams?.numCandidates ?? (request.needsLogProbs ? topLogProbs : -1);
    this.listsCandidates[row] = request.beams === null ? 0 : 1;
    if (bias !== null) this.biases.push({ row, ...bias });
    const draft = isGreedy(sampling) ? null : draftLogitsAt(request, sequence, length);
    if (draft !== null) this.draftRows.push({ row, ...draft });
    this.#addBanned(row, request, sequence, length);
    this.#addHistory(row, request, sequence, length);
  }

  /** Appends a row whose token nobody waits for: greedy, without log-probs. */
  addEmpty(): void {
    const row = this.numRows++;
    this.temperature[row] = 0;
    this.topK[row] = 0;
    this.topP[row] = 1;
    this.minP[row] = 0;
    this.repetitionPenalty[row] = 1;
    this.presencePenalty[row] = 0;
    this.frequencyPenalty[row] = 0;
    this.seed[row] = 0n;
    this.sequenceIndex[row] = 0;
    this.position[row] = 0;
    this.noRepeatNgramSize[row] = 0;
    this.bannedStart[row + 1] = this.bannedStart[row]!;
    this.numTopLogProbs[row] = -1;
    this.listsCandidates[row] = 0;
    this.historyPromptLength[row] = 0;
    this.historyStart[row + 1] = this.historyStart[row]!;
  }

  #addBanned(row: number, request: LlmRequest, { tokens }: GeneratedSequence, length: number): void {
    const { sampling, endingTokens, badWords } = request.spec;
    this.bannedStart[row + 1] = this.bannedStart[row]!;
    if (length - request.originalPromptLength < sampling.minLength) this.#ban(row, endingTokens);
    if (badWords === null) return;
    this.#ban(row, badWords.single);
    badWords.forEachCompletion(tokens, length, (token) => this.#banOne(row, token));
  }

  /** Appends to what the newest row must not draw. */
  #ban(row: number, tokens: Int32Array): void {
    const start = this.bannedStart[row + 1]!;
    const end = start + tokens.length;
    if (end > this.#banned.length) this.#banned = longer(this.#banned, end);
    this.#banned.set(tokens, start);
    this.bannedStart[row + 1] = end;
  }

  #banOne(row: number, token: number): void {
    const end = this.bannedStart[row + 1]!;
    if (end === this.#banned.length) this.#banned = longer(this.#banned, end + 1);
    this.#banned[end] = token;
    this.bannedStart[row + 1] = end + 1;
  }

  #addHistory(row: number, request: LlmRequest, sequence: GeneratedSequence, length: number): void {
    let end = this.historyStart[row]!;
    this.historyPromptLength[row] = 0;
    if (needsHistory(request.spec.sampling)) {
      if (end + length > this.#history.length) this.#history = longer(this.#history, end + length);
      this.#history.set(sequence.tokens.subarray(0, length), end);
      const { promptTable } = request.spec;
      if (promptTable !== null) this.#hideFrom(promptTable.firstId, end, end + request.originalPromptLength);
      this.historyPromptLength[row] = request.originalPromptLength;
      end += length;
    }
    this.historyStart[row + 1] = end;
  }

  /** Ids of a prompt table are no tokens of the vocabulary. */
  #hideFrom(firstId: number, start: number, end: number): void {
    for (let i = start; i < end; i++) if (this.#history[i]! >= firstId) this.#history[i] = -1;
  }
}

/** An array of at least twice the length with the same beginning. */
function longer(array: Int32Array, length: number): Int32Array {
  const larger = new Int32Array(2 * length);
  larger.set(array);
  return larger;
}
