import type { DraftCandidate, DraftPolicy, DraftRoom } from '../../engine/speculation/draft-policy.js';
import { randomNumbers } from '../bitwise/scenario.js';

/**
 * Drafts of random lengths that are right, right up to some token, or wrong. `answerOf`: the tokens that a
 * request will have, prompt first; drafts after their end are of random tokens.
 */
export class RandomDrafts implements DraftPolicy {
  drafted = 0;
  accepted = 0;
  wholeDrafts = 0;
  readonly #random: () => number;
  readonly #vocabSize: number;
  readonly #answerOf: (requestId: bigint) => readonly number[];

  readonly #errorRate: number;

  /** `errorRate`: how probable it is that a draft has a random token somewhere. */
  constructor(
    seed: number,
    vocabSize: number,
    answerOf: (requestId: bigint) => readonly number[],
    errorRate = 0.5,
  ) {
    this.#random = randomNumbers(seed);
    this.#vocabSize = vocabSize;
    this.#answerOf = answerOf;
    this.#errorRate = errorRate;
  }

  draft(candidates: readonly DraftCandidate[], { spareRows }: DraftRoom): void {
    let left = spareRows;
    for (const { request, most } of candidates) {
      const length = this.#integer(0, Math.min(most, left));
      if (length === 0) continue;
      const answer = this.#answerOf(request.requestId);
      const draft = Int32Array.from({ length }, (_, i) => answer[request.numTokens + i] ?? this.#token());
      if (this.#random() < this.#errorRate) draft[this.#integer(0, length - 1)] = this.#token();
      request.setDraft(draft, length);
      left -= length;
    }
  }

  noteVerified(_request: unknown, drafted: number, accepted: number): void {
    this.drafted += drafted;
    this.accepted += accepted;
    if (accepted === drafted) this.wholeDrafts++;
  }

  noteStep(): void {}

  release(): void {}

  checkIntegrity(): void {}

  #token(): number {
    return this.#integer(0, this.#vocabSize - 1);
  }

  #integer(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }
}
