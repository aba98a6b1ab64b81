import type { FinishCode } from '../../callbacks/response-batch.js';
import type { SamplingOutput } from '../packed-call/sampling-batch.js';
import type { GeneratedSequence } from './generated-sequence.js';

/** Results of a step for one request. */
export interface DrawnRows {
  output: SamplingOutput;
  /** First of the request's rows; the others follow in the order of SequenceGroup.rows. */
  firstRow: number;
  /** Place of the drawn tokens in the sequences. */
  place: number;
  /** True if no token may follow these. */
  isLast: boolean;
  /** True if the step ended the context: all sequences go on from the first block table. */
  fromContext: boolean;
}

/** Changes of a request's sequences in a step. */
export interface GroupChange {
  /** Number of tokens that were not known before, in all sequences together. */
  newTokens: number;
  /** The live sequence i goes on from the former live sequence parents[i]; null: all go on from themselves. */
  parents: readonly number[] | null;
}

/**
 * The sequences that a request generates side by side. All live ones have the same length: each step draws one token
 * for each of them, from a row of logits of its own.
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
  /** The sequences that still go on, in the order of the request's block tables. */
  readonly live: readonly GeneratedSequence[];
  /** The sequence of the first block table; once all have ended, in its state when the last one did. */
  readonly first: GeneratedSequence;
  /** The sequences that are answered, in the order of the answers; if only some are, known only when all have ended. */
  readonly sequences: readonly GeneratedSequence[];
  /** The sequence that each row of logits of a step is drawn for. `fromContext`: the step ends the context. */
  rows(fromContext: boolean): readonly GeneratedSequence[];
  /** Takes the tokens drawn in these rows. */
  take(drawn: DrawnRows): GroupChange;
  /** The request is paused: it begins again with its prompt. */
  pause(): void;
  /** Ends the sequences that have not ended. */
  stop(reason: FinishCode): void;
  /**
   * Ends an answered sequence, by its index among them. Returns the parents of the remaining sequences; null if it had
   * ended already, or none remains.
   */
  stopSequence(index: number, reason: FinishCode): readonly number[] | null;
}
