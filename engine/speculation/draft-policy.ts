import type { LlmRequest } from '../request/llm-request.js';
import type { KeptRows } from './hidden-rows.js';

/** A request that may have a draft in the step that is being packed. */
export interface DraftCandidate {
  readonly request: LlmRequest;
  /** Most tokens of its draft; at least 1. */
  readonly most: number;
}

/** The step that drafts are for. */
export interface DraftRoom {
  /** Rows of the step without drafts, including those of contexts. */
  rows: number;
  /** Number of these rows that belong to contexts. */
  contextTokens: number;
  /** Rows that there is room for in addition. */
  spareRows: number;
}

/** Decides which tokens may follow which sequences, and how many of them are worth a row. */
export interface DraftPolicy {
  /**
   * Gives some of the candidates a draft (`LlmRequest.setDraft`), within each candidate's limit and the room for all
   * together.
   */
  draft(candidates: readonly DraftCandidate[], room: DraftRoom): void;
  /** Notes that a draft of `drafted` tokens was verified and its first `accepted` ones were right. */
  noteVerified(request: LlmRequest, drafted: number, accepted: number): void;
  /**
   * Notes the milliseconds of a step of `rows` rows of generating sequences, with `contextTokens` context
   * tokens.
   */
  noteStep(rows: number, contextTokens: number, ms: number): void;
  /** Width of the rows that steps keep for the policy; absent or 0: it wants none. */
  readonly keptWidth?: number;
  /** Takes the first `count` of a request's rows out of those that a step has kept: those of its verified tokens. */
  noteRows?(kept: KeptRows, count: number, rows: Float32Array): void;
  /** Gives back everything held for a request that is paused or has ended. */
  release(request: LlmRequest): void;
  /** Throws a sentence naming the first inconsistency in its state; called in tests after each iteration. */
  checkIntegrity(): void;
}
