import type { FinishCode } from '../decoding/finish-reason.js';
import type { RequestSpec } from '../request-spec.js';
import { GeneratedSequence } from './generated-sequence.js';
import type { DrawnRows, GroupChange, SequenceGroup } from './sequence-group.js';

const UNMOVED: readonly GroupChange[] = [0, 1].map((newTokens) => ({ newTokens, parents: null }));

/** Sequences that are drawn independently of each other: one, or several from the same prompt. */
export class SampledSequences implements SequenceGroup {
  readonly sequences: readonly GeneratedSequence[];
  #live: readonly GeneratedSequence[];
  #first: GeneratedSequence;

  constructor(spec: RequestSpec) {
    this.sequences = [new GeneratedSequence(spec, 0)];
    this.#live = this.sequences;
    this.#first = this.sequences[0]!;
  }

  get live(): readonly GeneratedSequence[] {
    return this.#live;
  }

  get first(): GeneratedSequence {
    return this.#first;
  }

  rows(): readonly GeneratedSequence[] {
    return this.#live;
  }

  take({ output, firstRow, place, isLast, fromContext }: DrawnRows): GroupChange {
    const before = this.#live;
    let newTokens = 0;
    for (const [i, sequence] of before.entries()) {
      newTokens += sequence.append(place, output, firstRow + i, isLast);
    }
    if (before.length === 1) {
      if (this.#first.isFinished) this.#live = [];
      return UNMOVED[newTokens]!;
    }
    const live = before.filter((sequence) => !sequence.isFinished);
    this.#live = live;
    if (live.length === 0) return { newTokens, parents: null };
    this.#first = live[0]!;
    return { newTokens, parents: live.map((sequence) => (fromContext ? 0 : before.indexOf(sequence))) };
  }

  stop(reason: FinishCode): void {
    for (const sequence of this.#live.length > 0 ? this.#live : this.sequences)
      sequence.finishReason = reason;
    this.#live = [];
  }
}
