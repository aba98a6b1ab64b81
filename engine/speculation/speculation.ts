import type { LlmRequest } from '../request/llm-request.js';
import { AcceptanceRate } from './acceptance-rate.js';
import { chooseDraftLengths, couldPay, type DraftLoad } from './draft-lengths.js';
import type { DraftModel, WantedDraft } from './draft-model.js';
import type { DraftCandidate, DraftPolicy, DraftRoom } from './draft-policy.js';
import { GivenDraft } from './given-draft.js';
import { NgramIndex } from './ngram-index.js';
import { ReadingCost } from './reading-cost.js';
import { StepCost } from './step-cost.js';

export interface SpeculationOptions {
  /** Whether sequences are looked through for what followed when their last tokens stood there before. */
  usesNgrams: boolean;
  /** Draws drafts where nothing else proposes any; absent or null: there is none. */
  draftModel?: DraftModel | null;
  /** Most tokens of a draft that the engine finds itself. */
  maxDraftLen: number;
  /** Most rows of a step of generating sequences. */
  maxRows: number;
}

/** A place of so many equal tokens is found by more than chance; one token stands almost anywhere. */
const LONG_MATCH = 4;
const SHORT_MATCH = 2;
/** What a draft token is taken to be worth before any was verified. */
const GUESSES = { given: 0.7, singleMatch: 0.2, shortMatch: 0.4, longMatch: 0.7, model: 0.6 };
/** How much of what was seen of the draft model, over all requests, still counts after another draft. */
const KEPT_OF_MODEL = 0.98;
/** A sequence is taken to go on for as long as it has gone, and at least for so many tokens, if it may. */
const LEAST_EXPECTED = 128;
const NO_TOKENS = new Int32Array(0);

/** Tokens that may come next in a sequence. */
interface Proposal {
  tokens: Int32Array;
  length: number;
  /** Where the outcome is noted; null: they are known to be right. */
  rate: AcceptanceRate | null;
  /** They are not known yet: the draft model will draw as many as are wanted. */
  drawn: boolean;
}

const NO_PROPOSAL: Proposal = { tokens: NO_TOKENS, length: 0, rate: null, drawn: false };

/** What is remembered of a request as long as it is there. */
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
  /** The acceptance rate that the draft which is being verified counts for. */
  rate: AcceptanceRate | null = null;

  /** `modelGuess`: how good the draft model was for others. */
  constructor({ spec }: LlmRequest, { usesNgrams, maxDraftLen }: SpeculationOptions, modelGuess: number) {
    this.modelRate = new AcceptanceRate(modelGuess);
    const length = Math.min(maxDraftLen, spec.maxDraftLen ?? maxDraftLen);
    this.maxLength = length;
    this.given = spec.draftTokens === null ? null : new GivenDraft(spec.draftTokens);
    this.index = usesNgrams && length > 0 ? new NgramIndex() : null;
    this.found = this.index === null ? NO_TOKENS : new Int32Array(length);
  }

  /** The acceptance rate of drafts that were found by so many tokens. */
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
 * The drafts of an engine. In order: tokens that are known from before a pause, those that the request brought, what
 * followed in the sequence itself where its last tokens stood before, and what a draft model draws. How many of them get rows is a matter of what a row
 * costs just then and of how often such tokens have been right.
 *
 * Steps with context tokens have no drafts: there every row costs its full share.
 */
export class Speculation implements DraftPolicy {
  readonly #options: SpeculationOptions;
  readonly #cost: StepCost;
  /** What the model itself takes to read a token. */
  readonly #reading = new ReadingCost();
  readonly #draftModel: DraftModel | null;
  /** Acceptance rate of all that the draft model drew lately: the guess for the next request. */
  readonly #modelRate = new AcceptanceRate(GUESSES.model, KEPT_OF_MODEL);
  readonly #states = new WeakMap<LlmRequest, RequestState>();

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
    if (couldPay(load, drafting.length, most)) this.#propose(drafting, load);
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

  release(request: LlmRequest): void {
    this.#draftModel?.release(request);
  }

  checkIntegrity(): void {
    this.#draftModel?.checkIntegrity();
  }

  /** Asked of every sequence in every step, so it makes nothing. */
  #mayPropose(request: LlmRequest): boolean {
    const { draftTokens, maxDraftLen } = request.spec;
    if ((this.#options.usesNgrams || this.#draftModel !== null) && maxDraftLen !== 0) return true;
    return draftTokens !== null || request.numReplayed > 0;
  }

  #propose(candidates: readonly DraftCandidate[], load: DraftLoad): void {
    const proposals = candidates.map((candidate) => this.#proposalFor(candidate));
    const lengths = this.#chooseLengths(candidates, proposals, load);
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
   * Before the draft model draws for a sequence it has to read it, which may take it longer than all its drafts save: at
   * the end of a full batch, when the last of many sequences would be read for a few tokens each.
   */
  #chooseLengths(
    candidates: readonly DraftCandidate[],
    proposals: readonly Proposal[],
    load: DraftLoad,
  ): number[] {
    const options = proposals.map(({ length, rate, drawn }) => ({
      most: length,
      acceptance: rate?.rate ?? 1,
      drawn,
    }));
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
    const left = Math.min(maxNewTokens - generatedLength, Math.max(generatedLength, LEAST_EXPECTED));
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
    return { tokens: found, length: Math.min(most, length), rate: state.rateOf(matchLength), drawn: false };
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
