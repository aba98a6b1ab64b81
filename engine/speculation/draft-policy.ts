import type { LlmRequest } from '../request/llm-request.js';

/** A request that may have a draft in the step that is being packed. */
export interface DraftCandidate {
  readonly request: LlmRequest;
  /** Most tokens of its draft; at least 1. */
  readonly most: number;
}

/** The step that drafts are for. */
export interface DraftRoom {
  /** Rows that it has without drafts, those of contexts included. */
  rows: number;
  /** How many of these rows are of contexts. */
  contextTokens: number;
  /** Rows that there is room for beside them. */
  spareRows: number;
}

/** Decides which tokens may follow which sequences, and how many of them are worth a row. */
export interface DraftPolicy {
  /**
   * Gives some of the candidates a draft (`LlmRequest.setDraft`), of no more tokens than each may have and than there is
   * room for altogether.
   */
  draft(candidates: readonly DraftCandidate[], room: DraftRoom): void;
  /** A draft of `drafted` tokens was verified: its first `accepted` ones were right. */
  noteVerified(request: LlmRequest, drafted: number, accepted: number): void;
  /** A step of so many rows of generating sequences, and so many context tokens beside them, took so many milliseconds. */
  noteStep(rows: number, contextTokens: number, ms: number): void;
  /** A request is paused or has ended: what is held for it is given back. */
  release(request: LlmRequest): void;
  /** Throws a sentence naming the first inconsistency in what it holds; in tests after each iteration. */
  checkIntegrity(): void;
}
