import type { FinishCode } from '../../callbacks/response-batch.js';
import { GeneratedSequence } from './generated-sequence.js';
import type { RequestSpec } from './request-spec.js';
import type { DrawnRows, GroupChange, SequenceGroup } from './sequence-group.js';

const UNMOVED: readonly GroupChange[] = [0, 1].map((newTokens) => ({ newTokens, parents: null }));

/**
 * Sequences that are drawn independently of each other: one, or several from the same prompt, each with the random
 * numbers of its index. If fewer are answered than drawn, they are those of the greatest mean log-prob.
 */
export class SampledSequences implements SequenceGroup {
  readonly #all: readonly GeneratedSequence[];
  readonly #numReturned: number;
  #live: readonly GeneratedSequence[];
  #first: GeneratedSequence;

  constructor(spec: RequestSpec) {
    this.#all = Array.from({ length: spec.numSequences }, (_, index) => new GeneratedSequence(spec, index));
    this.#numReturned = spec.numReturned;
    this.#live = this.#all.filter((sequence) => !sequence.isFinished);
    this.#first = this.#live[0] ?? this.#all[0]!;
  }

  /** The answered sequences: the best first if some are left out; else in the order of their indexes. */
  get sequences(): readonly GeneratedSequence[] {
    if (this.#numReturned === this.#all.length) return this.#all;
    // The sort is stable: of equal ones the lower index comes first. Equal values are compared first, since Infinity -
    // Infinity is NaN.
    const better = (a: number, b: number) => (a === b ? 0 : b - a);
    return this.#all.toSorted((a, b) => better(a.meanLogProb, b.meanLogProb)).slice(0, this.#numReturned);
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
    if (this.#all.length === 1) {
      if (this.#first.isFinished) this.#live = [];
      return UNMOVED[newTokens]!;
    }
    return { newTokens, parents: this.#keepLive(fromContext) };
  }

  /** Nothing to do: known tokens stay known. */
  pause(): void {}

  stop(reason: FinishCode): void {
    for (const sequence of this.#live.length > 0 ? this.#live : this.#all) sequence.finishReason = reason;
    this.#live = [];
  }

  stopSequence(index: number, reason: FinishCode): readonly number[] | null {
    const sequence = this.#all[index];
    if (sequence === undefined || sequence.isFinished) return null;
    sequence.finishReason = reason;
    return this.#keepLive(false);
  }

  /** Takes out ended sequences; returns the parents of the others, or null if there are none. */
  #keepLive(fromContext: boolean): readonly number[] | null {
    const before = this.#live;
    const live = before.filter((sequence) => !sequence.isFinished);
    this.#live = live;
    if (live.length === 0) return null;
    this.#first = live[0]!;
    return live.map((sequence) => (fromContext ? 0 : before.indexOf(sequence)));
  }
}
