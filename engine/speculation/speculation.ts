import type { LlmRequest } from '../request/llm-request.js';
import { AcceptanceRate } from './acceptance-rate.js';
import {
  chooseDraftLengths,
  couldPay,
  type DraftLoad,
  type DraftCandidate as SequenceDraft,
} from './draft-lengths.js';
import type { DraftModel, WantedDraft } from './draft-model.js';
import type { DraftCandidate, DraftPolicy, DraftRoom } from './draft-policy.js';
import { GivenDraft } from './given-draft.js';
import type { KeptRows } from './hidden-rows.js';
import { NgramIndex } from './ngram-index.js';
import { ReadingCost } from './reading-cost.js';
import { RowTrials } from './row-trials.js';
import { StepCost } from './step-cost.js';

export interface SpeculationOptions {
  /** True if drafts are taken from earlier occurrences of a sequence's last tokens. */
  usesNgrams: boolean;
  /** Draws drafts if there is no other proposal; absent or null: there is no draft model. */
  draftModel?: DraftModel | null;
  /** Most tokens of a draft that the engine finds itself. */
  maxDraftLen: number;
  /** Most rows of generating sequences in a step. */
  maxRows: number;
}

/** Number of equal tokens from which a match is more than chance; a single token occurs almost anywhere. */
const LONG_MATCH = 4;
const SHORT_MATCH = 2;
/** Guesses for the acceptance of a draft token before any was verified. */
const GUESSES = { given: 0.7, singleMatch: 0.2, shortMatch: 0.4, longMatch: 0.7, model: 0.6 };
/** Share of older observations of the draft model, over all requests, that still counts after another draft. */
const KEPT_OF_MODEL = 0.98;
/** Least number of tokens that a sequence is expected to go on for; otherwise as many as it already has. */
const MIN_EXPECTED = 128;
const NO_TOKENS = new Int32Array(0);

/** Tokens that may come next in a sequence. */
interface Proposal {
  tokens: Int32Array;
  length: number;
  /** Rate that notes the outcome; null: the tokens are known to be right. */
  rate: AcceptanceRate | null;
  /** True if the tokens are not known yet: the draft model will draw as many as are wanted. */
  drawn: boolean;
}

const NO_PROPOSAL: Proposal = { tokens: NO_TOKENS, length: 0, rate: null, drawn: false };

/** State kept for a request while it is active. */
class RequestState {
  readonly given: GivenDraft | null;
  readonly givenRate = new AcceptanceRate(GUESSES.given);
  readonly singleMatches = new AcceptanceRate(GUESSES.singleMatch);
  readonly shortMatches = new AcceptanceRate(GUESSES.shortMatch);
  readonly longMatches = new AcceptanceRate(GUESSES.longMatch);
  readonly modelRate: AcceptanceRate;
  /** Most tokens of a draft that the engine finds itself. */
  readonly maxLength: number;
  readonly index: NgramIndex | null;
  readonly found: Int32Array;
  /** The acceptance rate that the draft being verified counts for. */
  rate: AcceptanceRate | null = null;

  /** `modelGuess`: acceptance of the draft model's tokens in other requests. */
  constructor({ spec }: LlmRequest, { usesNgrams, maxDraftLen }: SpeculationOptions, modelGuess: number) {
    this.modelRate = new AcceptanceRate(modelGuess);
    const length = Math.min(maxDraftLen, spec.maxDraftLen ?? maxDraftLen);
    this.maxLength = length;
    this.given = spec.draftTokens === null ? null : new GivenDraft(spec.draftTokens);
    this.index = usesNgrams && length > 0 ? new NgramIndex() : null;
    this.found = this.index === null ? NO_TOKENS : new Int32Array(length);
  }

  /** Acceptance rate of drafts found by a match of `matchLength` tokens. */
  rateOf(matchLength: number): AcceptanceRate {
    if (matchLength >= LONG_MATCH) return this.longMatches;
    return matchLength >= SHORT_MATCH ? this.shortMatches : this.singleMatches;
  }

  noteIdleStep(): void {
    this.singleMatches.noteIdleStep();
    this.shortMatches.noteIdleStep();
    this.longMatches.noteIdleStep();
    this.modelRate.noteIdleStep();
  }
}

/**
 * The drafts of an engine. Their sources, in order: tokens known from before a pause, tokens that the request brought, tokens
 * that followed an earlier occurrence of the sequence's last ones, and tokens drawn by a draft model. How many of them get rows
 * depends on the present cost of a row and on how often such tokens have been right.
 *
 * Steps with context tokens have no drafts: in them every row costs its full share.
 */
export class Speculation implements DraftPolicy {
  readonly #options: SpeculationOptions;
  readonly #cost: StepCost;
  /** Time that the model itself takes to read a token. */
  readonly #reading = new ReadingCost();
  readonly #draftModel: DraftModel | null;
  /** Acceptance rate of the draft model's latest tokens: the guess for the next request. */
  readonly #modelRate = new AcceptanceRate(GUESSES.model, KEPT_OF_MODEL);
  readonly #states = new WeakMap<LlmRequest, RequestState>();
  readonly #trials = new RowTrials();

  constructor(options: SpeculationOptions) {
    this.#options = options;
    this.#cost = new StepCost(options.maxRows);
    this.#draftModel = options.draftModel ?? null;
  }

  draft(candidates: readonly DraftCandidate[], { rows, contextTokens, spareRows }: DraftRoom): void {
    if (contextTokens > 0) return;
    const drafting = candidates.filter(({ request }) => this.#mayPropose(request));
    if (drafting.length === 0) return;
    const costOf = (count: number) => this.#cost.of(count);
    const roundCostOf = (sequences: number) => this.#draftModel?.roundCost(costOf(sequences)) ?? 0;
    const load = { rows, spareRows, costOf, roundCostOf };
    const most = Math.max(...drafting.map((candidate) => candidate.most));
    if (couldPay(load, drafting.length, most)) {
      this.#trials.notePaying();
      this.#propose(drafting, load, false);
    } else if (this.#trials.noteStep()) this.#propose(drafting, load, true);
    else for (const { request } of drafting) this.#states.get(request)?.noteIdleStep();
  }

  noteVerified(request: LlmRequest, drafted: number, accepted: number): void {
    const state = this.#states.get(request);
    state?.rate?.note(drafted, accepted);
    if (state !== undefined && state.rate === state.modelRate) this.#modelRate.note(drafted, accepted);
  }

  noteStep(rows: number, contextTokens: number, ms: number): void {
    if (contextTokens > 0) this.#reading.note(contextTokens + rows, ms);
    else this.#cost.note(rows, ms);
  }

  get keptWidth(): number {
    return this.#draftModel?.keptWidth ?? 0;
  }

  noteRows(kept: KeptRows, count: number, rows: Float32Array): void {
    this.#draftModel?.noteRows(kept, count, rows);
  }

  release(request: LlmRequest): void {
    this.#draftModel?.release(request);
  }

  checkIntegrity(): void {
    this.#draftModel?.checkIntegrity();
  }

  /** True if a draft can be proposed at all. Asked of every sequence in every step, so it allocates nothing. */
  #mayPropose(request: LlmRequest): boolean {
    const { draftTokens, maxDraftLen } = request.spec;
    if ((this.#options.usesNgrams || this.#draftModel !== null) && maxDraftLen !== 0) return true;
    return draftTokens !== null || request.numReplayed > 0;
  }

  /** @param isTrial drafts a few likely tokens to learn what a step of more rows costs, in place of those that pay */
  #propose(candidates: readonly DraftCandidate[], load: DraftLoad, isTrial: boolean): void {
    const proposals = candidates.map((candidate) => this.#proposalFor(candidate));
    const options = proposals.map(({ length, rate, drawn }) => ({
      most: length,
      acceptance: rate?.rate ?? 1,
      drawn,
    }));
    const lengths = isTrial
      ? this.#trials.lengths(options, load)
      : this.#chooseLengths(candidates, options, load);
    const wanted: WantedDraft[] = [];
    for (const [i, { request }] of candidates.entries()) {
      const { tokens, rate, drawn } = proposals[i]!;
      const length = lengths[i]!;
      const state = this.#state(request);
      state.rate = rate;
      if (length === 0) state.noteIdleStep();
      else if (drawn) wanted.push({ request, length });
      else request.setDraft(tokens, length);
    }
    if (wanted.length > 0) this.#draftModel?.draw(wanted, load.costOf);
    else this.#noteIdleModel();
  }

  #noteIdleModel(): void {
    this.#draftModel?.noteIdleStep();
    this.#modelRate.noteIdleStep();
  }

  /**
   * Chooses the lengths of drafts. Before the draft model can draw for a sequence it has to read it, which may cost more
   * than all its drafts save: at the end of a full batch, for example, the last of many sequences would be read for a
   * few tokens each.
   */
  #chooseLengths(candidates: readonly DraftCandidate[], options: SequenceDraft[], load: DraftLoad): number[] {
    const { lengths, savedByModel } = chooseDraftLengths(options, load);
    let isRead = true;
    for (const [i, option] of options.entries()) {
      if (!option.drawn || lengths[i] === 0 || this.#paysToRead(candidates[i]!.request, savedByModel))
        continue;
      option.most = 0;
      isRead = false;
    }
    return isRead ? lengths : chooseDraftLengths(options, load).lengths;
  }

  #paysToRead(request: LlmRequest, savedMs: number): boolean {
    const { generatedLength, maxNewTokens } = request;
    const left = Math.min(maxNewTokens - generatedLength, Math.max(generatedLength, MIN_EXPECTED));
    const reading = this.#draftModel?.readingCost(request, this.#reading.perToken ?? 0) ?? 0;
    return reading <= left * savedMs;
  }

  #proposalFor({ request, most }: DraftCandidate): Proposal {
    const state = this.#state(request);
    const { numTokens, numReplayed } = request;
    if (numReplayed > 0) return { ...NO_PROPOSAL, length: Math.min(most, numReplayed) };
    const given = state.given?.rest(request.tokens, request.originalPromptLength, numTokens) ?? NO_TOKENS;
    if (given.length > 0) {
      return { tokens: given, length: Math.min(most, given.length), rate: state.givenRate, drawn: false };
    }
    const found = this.#lookUp(state, request, most);
    return found.length > 0 ? found : this.#drawnFor(state, request, most);
  }

  #lookUp(state: RequestState, request: LlmRequest, most: number): Proposal {
    const { index, found } = state;
    if (index === null) return NO_PROPOSAL;
    const { length, matchLength } = index.propose(request.tokens, request.numTokens, found);
    const drawable = beforeOwnRows(request, found, length);
    return { tokens: found, length: Math.min(most, drawable), rate: state.rateOf(matchLength), drawn: false };
  }

  #drawnFor({ modelRate, maxLength }: RequestState, request: LlmRequest, most: number): Proposal {
    if (this.#draftModel === null) return NO_PROPOSAL;
    const length = Math.min(most, maxLength, this.#draftModel.mostTokens(request));
    return { tokens: NO_TOKENS, length, rate: modelRate, drawn: true };
  }

  #state(request: LlmRequest): RequestState {
    let state = this.#states.get(request);
    if (state === undefined) {
      state = new RequestState(request, this.#options, this.#modelRate.rate);
      this.#states.set(request, state);
    }
    return state;
  }
}

/** Number of the first tokens of a draft that can be drawn: an id of the prompt's own rows, as a picture's, never is. */
function beforeOwnRows({ spec: { promptTable } }: LlmRequest, draft: Int32Array, length: number): number {
  if (promptTable === null) return length;
  const own = draft.subarray(0, length).findIndex((token) => token >= promptTable.firstId);
  return own < 0 ? length : own;
}
