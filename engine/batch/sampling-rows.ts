import { columnHolder } from '../../base/columns.js';
import { isGreedy, needsHistory } from '../../callbacks/sampling-params.js';
import { CALL_HEADER, type CallPlace, newHeader } from '../packed-call/call-header.js';
import { samplingCounts } from '../packed-call/call-limits.js';
import {
  type DraftRow,
  type RowBias,
  type RowChain,
  SAMPLING_TABLE,
  type SamplingBatch,
  type TokenMasks,
} from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';

/**
 * The SamplingBatch of the loop: allocated once, filled row by row in each iteration. `banned` is replaced by a larger array
 * once the rows ban more than it holds; so is `history` once drafts need more, since each draft token repeats the history
 * before it. Only the requests know how much that is.
 */
export class SamplingRows extends columnHolder(SAMPLING_TABLE) implements SamplingBatch {
  /** Set if a row of the batch has a guide. */
  tokenMasks: TokenMasks | null = null;
  /** Empty in most iterations. */
  readonly biases: RowBias[] = [];
  /** Empty in most iterations. */
  readonly draftRows: DraftRow[] = [];
  /** Both are empty in most iterations. */
  readonly penalties: RowBias[] = [];
  readonly chains: RowChain[] = [];

  readonly #counts: Int32Array;

  /**
   * `expectedHistory`: most tokens that all rows' histories hold together without drafts. `place`: memory for the arrays and
   * the count; absent: memory of their own.
   */
  constructor(maxRows: number, expectedHistory: number, place?: CallPlace) {
    super(samplingCounts(maxRows, expectedHistory), place?.region);
    this.#counts = place?.header ?? newHeader();
  }

  get numRows(): number {
    return this.#counts[CALL_HEADER.numRows]!;
  }

  set numRows(count: number) {
    this.#counts[CALL_HEADER.numRows] = count;
  }

  clear(): void {
    this.numRows = 0;
    this.biases.length = 0;
    this.draftRows.length = 0;
    this.penalties.length = 0;
    this.chains.length = 0;
    this.tokenMasks = null;
  }

  /**
   * Appends the row that draws a token of one of the request's sequences: the next one, or the one after the
   * first `ahead` tokens of its draft, which then count as if they had been generated.
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
    // The end of reasoning that a budget forces is drawn whatever else the request asks for.
    const forced =
      request.spec.reasoningBudget?.biasBehind(sequence.tokens, request.originalPromptLength, length) ?? null;
    const added = forced ?? bias;
    if (added !== null) this.biases.push({ row, ...added });
    const { chain } = sequence;
    if (chain !== null)
      this.chains.push({ row, values: chain.valuesAt(length - request.originalPromptLength) });
    const noDraft = isGreedy(sampling) || chain !== null || forced !== null;
    const draft = noDraft ? null : draftLogitsAt(request, sequence, length);
    if (draft !== null) this.draftRows.push({ row, ...draft });
    this.bannedStart[row + 1] = this.bannedStart[row]!;
    if (forced === null) this.#addBanned(row, request, sequence, length);
    else this.noRepeatNgramSize[row] = 0;
    this.#addHistory(row, request, sequence, length);
    this.#addPenalties(row, request, sequence, length);
  }

  /** Appends a row whose token is not used: greedy, without log-probs. */
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
    if (length - request.originalPromptLength < sampling.minLength) this.#ban(row, endingTokens);
    if (badWords === null) return;
    this.#ban(row, badWords.single);
    badWords.forEachCompletion(tokens, length, (token) => this.#banOne(row, token));
  }

  /** Adds tokens to those that the newest row must not draw. */
  #ban(row: number, tokens: Int32Array): void {
    const start = this.bannedStart[row + 1]!;
    const end = start + tokens.length;
    if (end > this.banned.length) SAMPLING_TABLE.grow(this, 'banned', end);
    this.banned.set(tokens, start);
    this.bannedStart[row + 1] = end;
  }

  #banOne(row: number, token: number): void {
    const end = this.bannedStart[row + 1]!;
    if (end === this.banned.length) SAMPLING_TABLE.grow(this, 'banned', end + 1);
    this.banned[end] = token;
    this.bannedStart[row + 1] = end + 1;
  }

  #addHistory(row: number, request: LlmRequest, sequence: GeneratedSequence, length: number): void {
    let end = this.historyStart[row]!;
    this.historyPromptLength[row] = 0;
    const { sampling, promptTable } = request.spec;
    if (needsHistory(sampling)) {
      const first = sampling.penaltyLastN < 0 ? 0 : Math.max(0, length - sampling.penaltyLastN);
      const seen = length - first;
      const ofPrompt = Math.max(0, request.originalPromptLength - first);
      if (end + seen > this.history.length) SAMPLING_TABLE.grow(this, 'history', end + seen);
      this.history.set(sequence.tokens.subarray(first, length), end);
      if (promptTable !== null) this.#hideFrom(promptTable.firstId, end, end + ofPrompt);
      this.historyPromptLength[row] = ofPrompt;
      end += seen;
    }
    this.historyStart[row + 1] = end;
  }

  #addPenalties(row: number, { spec }: LlmRequest, { tokens }: GeneratedSequence, length: number): void {
    const penalties = spec.dry?.biasBehind(tokens, length) ?? null;
    if (penalties !== null) this.penalties.push({ row, ...penalties });
  }

  /** Hides ids of a prompt table, which are no tokens of the vocabulary. */
  #hideFrom(firstId: number, start: number, end: number): void {
    for (let i = start; i < end; i++) if (this.history[i]! >= firstId) this.history[i] = -1;
  }
}

/**
 * Draft token and logits that place `length` of the sequence is drawn against, if its request brought logits with its
 * draft; null: none.
 *
 *   draft      5 7 9 4
 *   sequence   prompt 5 7 .      the third token is drawn against 9 and its logits
 *   sequence   prompt 5 8 .      nothing more is: the draft is over
 *
 * The result depends only on the tokens before the place, so that a token does not depend on how many rows of the draft
 * are verified at once, at what load, or after how many pauses.
 */
function draftLogitsAt(
  { spec, originalPromptLength }: LlmRequest,
  { tokens }: GeneratedSequence,
  length: number,
): Omit<DraftRow, 'row'> | null {
  const { draftTokens, draftLogits } = spec;
  if (draftTokens === null || draftLogits === null) return null;
  const place = length - originalPromptLength;
  if (place >= draftTokens.length) return null;
  for (let i = 0; i < place; i++) if (tokens[originalPromptLength + i] !== draftTokens[i]) return null;
  const vocabSize = draftLogits.length / draftTokens.length;
  const logits = draftLogits.subarray(place * vocabSize, (place + 1) * vocabSize);
  return { token: draftTokens[place]!, logits };
}
