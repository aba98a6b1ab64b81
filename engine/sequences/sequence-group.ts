import type { FinishCode } from '../../callbacks/finish-reason.js';
import type { SamplingOutput } from '../decoding/sampling-batch.js';
import type { GeneratedSequence } from './generated-sequence.js';

/** What a step drew for one request. */
export interface DrawnRows {
  output: SamplingOutput;
  /** The first of the request's rows; the others follow in the order of SequenceGroup.rows. */
  firstRow: number;
  /** Place in the sequences of the tokens that were drawn. */
  place: number;
  /** The sequences may have no token behind these. */
  isLast: boolean;
  /** The step ended the context: the first block table has what all go on from. */
  fromContext: boolean;
}

/** What became of a request's sequences. */
export interface GroupChange {
  /** Tokens that were not known before, in all sequences together. */
  newTokens: number;
  /** The live sequence i goes on from what was the live sequence parents[i]; null: all go on from themselves. */
  parents: readonly number[] | null;
}

/**
 * The sequences that a request generates side by side. All that are live have the same length: each step draws one
 * token for each of them, from a row of logits of its own.
 *
 *   request with 3 sequences, 2 of them live, 10 tokens each      rows of the step
 *     sequences   0  p p p p g g g g g g .                        token 9 of sequence 0 with its block table
 *                 1  p p p p g g (ended)
 *                 2  p p p p g g g g g g .                        token 9 of sequence 2 with its block table
 *     live        0 2              their block tables are numbers 0 and 1
 *
 * The last row of the prompt serves all of them: in that step each draws from a copy of it.
 */
export interface SequenceGroup {
  /** The sequences that go on, in the order of the request's block tables. */
  readonly live: readonly GeneratedSequence[];
  /** The sequence of the first block table; once all have ended, as it was when the last of them did. */
  readonly first: GeneratedSequence;
  /** The sequences that are answered, in the order of the answers; where not all are, known only when all have ended. */
  readonly sequences: readonly GeneratedSequence[];
  /** The sequence that each row of logits of a step is drawn for. `fromContext`: it is the one that ends the context. */
  rows(fromContext: boolean): readonly GeneratedSequence[];
  /** Takes what was drawn in these rows. */
  take(drawn: DrawnRows): GroupChange;
  /** The request is paused: it begins again with its prompt. */
  pause(): void;
  /** Ends what has not ended. */
  stop(reason: FinishCode): void;
  /**
   * Ends one that is answered, by its place among these. Returns what those that go on have as parents; null where it had
   * ended, or none goes on.
   */
  stopSequence(index: number, reason: FinishCode): readonly number[] | null;
}
