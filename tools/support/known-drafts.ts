import type { LlmRequest } from '../../engine/request/llm-request.js';
import { DraftModel, type DraftModelParts, type WantedDraft } from '../../engine/speculation/draft-model.js';

/**
 * Runs the rounds of a draft model or a head whose weights are random, and drafts in their place tokens that are known to come, each of
 * which is right with a given probability: what a trained one of that acceptance would bring, at the cost that it would have.
 */
export class KnownDrafts extends DraftModel {
  readonly #tokensOf: (request: LlmRequest) => ArrayLike<number> | undefined;
  readonly #rate: number;
  readonly #random: () => number;

  /** @param tokensOf the tokens that a request will generate; undefined: its drafts stay as they were drawn */
  constructor(
    parts: DraftModelParts,
    tokensOf: (request: LlmRequest) => ArrayLike<number> | undefined,
    rate: number,
    random: () => number,
  ) {
    super(parts);
    this.#tokensOf = tokensOf;
    this.#rate = rate;
    this.#random = random;
  }

  override draw(wanted: readonly WantedDraft[], costOf: (rows: number) => number): void {
    super.draw(wanted, costOf);
    for (const { request } of wanted) this.replace(request);
  }

  /** Puts known tokens in the place of those that were drawn for a request. */
  protected replace(request: LlmRequest): void {
    const { draftLength, numTokens, originalPromptLength } = request;
    const known = this.#tokensOf(request);
    if (known === undefined || draftLength === 0) return;
    const tokens = Int32Array.from({ length: draftLength }, (_, i) => {
      const right = known[numTokens - originalPromptLength + i] ?? 0;
      return this.#random() < this.#rate ? right : right === 0 ? 1 : right - 1;
    });
    request.setDraft(tokens, draftLength);
  }
}
