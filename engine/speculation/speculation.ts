import type { LlmRequest } from '../llm-request.js';
import { AcceptanceRate } from './acceptance-rate.js';
import { chooseDraftLengths, couldPay, type DraftLoad } from './draft-lengths.js';
import type { DraftCandidate, DraftPolicy, DraftRoom } from './draft-policy.js';
import { GivenDraft } from './given-draft.js';
import { NgramIndex } from './ngram-index.js';
import { StepCost } from './step-cost.js';

export interface SpeculationOptions {
  /** Whether sequences are looked through for what followed when their last tokens stood there before. */
  usesNgrams: boolean;
  /** Most tokens of a draft that the engine finds itself. */
  maxDraftLen: number;
  /** Most rows of a step of generating sequences. */
  maxRows: number;
}

/** From so many tokens on a place is found by more than chance. */
const LONG_MATCH = 4;
/** What a draft token is taken to be worth before any was verified. */
const GUESSES = { given: 0.7, shortMatch: 0.4, longMatch: 0.7 };
const NO_TOKENS = new Int32Array(0);

/** Tokens that may come next in a sequence. */
interface Proposal {
  tokens: Int32Array;
  length: number;
  /** Where the outcome is noted; null: they are known to be right. */
  rate: AcceptanceRate | null;
}

/** What is remembered of a request as long as it is there. */
class RequestState {
  readonly given: GivenDraft | null;
  readonly givenRate = new AcceptanceRate(GUESSES.given);
  readonly shortMatches = new AcceptanceRate(GUESSES.shortMatch);
  readonly longMatches = new AcceptanceRate(GUESSES.longMatch);
  readonly index: NgramIndex | null;
  readonly found: Int32Array;
  /** Of the draft that is being verified. */
  rate: AcceptanceRate | null = null;

  constructor({ spec }: LlmRequest, { usesNgrams, maxDraftLen }: SpeculationOptions) {
    const length = Math.min(maxDraftLen, spec.maxDraftLen ?? maxDraftLen);
    this.given = spec.draftTokens === null ? null : new GivenDraft(spec.draftTokens);
    this.index = usesNgrams && length > 0 ? new NgramIndex() : null;
    this.found = this.index === null ? NO_TOKENS : new Int32Array(length);
  }

  noteIdleStep(): void {
    this.shortMatches.noteIdleStep();
    this.longMatches.noteIdleStep();
  }
}

/**
 * The drafts of an engine. In order: tokens that are known from before a pause, those that the request brought, and what
 * followed in the sequence itself where its last tokens stood before. How many of them get rows is a matter of what a row
 * costs just then and of how often such tokens have been right.
 *
 * Steps with context tokens have no drafts: there every row costs its full share.
 */
export class Speculation implements DraftPolicy {
  readonly #options: SpeculationOptions;
  readonly #cost: StepCost;
  readonly #states = new WeakMap<LlmRequest, RequestState>();

  constructor(options: SpeculationOptions) {
    this.#options = options;
    this.#cost = new StepCost(options.maxRows);
  }

  draft(candidates: readonly DraftCandidate[], { rows, contextTokens, spareRows }: DraftRoom): void {
    if (contextTokens > 0) return;
    const drafting = candidates.filter(({ request }) => this.#mayPropose(request));
    if (drafting.length === 0) return;
    const load = { rows, spareRows, costOf: (count: number) => this.#cost.of(count), roundCost: 0 };
    const most = Math.max(...drafting.map((candidate) => candidate.most));
    if (couldPay(load, drafting.length, most)) this.#propose(drafting, load);
    else for (const { request } of drafting) this.#states.get(request)?.noteIdleStep();
  }

  noteVerified(request: LlmRequest, drafted: number, accepted: number): void {
    this.#states.get(request)?.rate?.note(drafted, accepted);
  }

  noteStep(rows: number, ms: number): void {
    this.#cost.note(rows, ms);
  }

  /** Asked of every sequence in every step, so it makes nothing. */
  #mayPropose(request: LlmRequest): boolean {
    const { draftTokens, maxDraftLen } = request.spec;
    if (this.#options.usesNgrams && maxDraftLen !== 0) return true;
    return draftTokens !== null || request.numReplayed > 0;
  }

  #propose(candidates: readonly DraftCandidate[], load: DraftLoad): void {
    const proposals = candidates.map((candidate) => this.#proposalFor(candidate));
    const lengths = chooseDraftLengths(
      proposals.map(({ length, rate }) => ({ most: length, acceptance: rate?.rate ?? 1, drawn: false })),
      load,
    );
    for (const [i, { request }] of candidates.entries()) {
      const { tokens, rate } = proposals[i]!;
      const state = this.#state(request);
      state.rate = rate;
      if (lengths[i]! > 0) request.setDraft(tokens, lengths[i]!);
      else state.noteIdleStep();
    }
  }

  #proposalFor({ request, most }: DraftCandidate): Proposal {
    const state = this.#state(request);
    const { numTokens, numReplayed } = request;
    if (numReplayed > 0) return { tokens: NO_TOKENS, length: Math.min(most, numReplayed), rate: null };
    const given = state.given?.rest(request.tokens, request.originalPromptLength, numTokens) ?? NO_TOKENS;
    if (given.length > 0) {
      return { tokens: given, length: Math.min(most, given.length), rate: state.givenRate };
    }
    if (state.index === null) return { tokens: NO_TOKENS, length: 0, rate: null };
    const { length, matchLength } = state.index.propose(request.tokens, numTokens, state.found);
    const rate = matchLength < LONG_MATCH ? state.shortMatches : state.longMatches;
    return { tokens: state.found, length: Math.min(most, length), rate };
  }

  #state(request: LlmRequest): RequestState {
    let state = this.#states.get(request);
    if (state === undefined) {
      state = new RequestState(request, this.#options);
      this.#states.set(request, state);
    }
    return state;
  }
}
