/** What a request asks of its beam search. */
export interface BeamParams {
  /** Number of beams, at least 2. */
  width: number;
  /** A hypothesis of n tokens is worth the sum of its log-probs / n ** lengthPenalty. */
  lengthPenalty: number;
  /** See BeamHypotheses. */
  earlyStopping: EarlyStopping;
}

export type EarlyStopping = boolean | 'never';

/**
 * Candidates that each beam brings to a step. The search goes on with the best `width` of all that do not end a hypothesis,
 * and at most `endings` tokens do: so many always hold them, and the best `width` of all too.
 */
export function candidatesPerBeam({ width }: BeamParams, endings: number): number {
  return width + endings;
}
