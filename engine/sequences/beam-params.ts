/** A request's parameters of beam search. */
export interface BeamParams {
  /** Number of beams, at least 2. */
  width: number;
  /** Exponent of the length: a hypothesis of n tokens scores the sum of its log-probs / n ** lengthPenalty. */
  lengthPenalty: number;
  /** See BeamHypotheses. */
  earlyStopping: EarlyStopping;
}

export type EarlyStopping = boolean | 'never';

/**
 * Number of candidates that each beam brings to a step. The search goes on with the best `width` candidates that do not end
 * a hypothesis, and at most `endings` tokens do end one: that many candidates always contain them, and the
 * best `width` of all too.
 */
export function candidatesPerBeam({ width }: BeamParams, endings: number): number {
  return width + endings;
}
