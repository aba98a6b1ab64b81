/**
 * Number of a draft's tokens that are accepted: those before the first one that the model itself did not draw. `drawn[row
 * + i]` is the token that the model drew in the place of draft[i], with the random numbers of that position, given the
 * draft before it:
 *
 *   rows        newest token   d0   d1   d2        each row is drawn for the position after it
 *   drawn             d0       d1    x    y        d0 and d1 are accepted; x is drawn after them, so it is right too
 *   tokens                 d0  d1  x               y followed a token that is not there: it is dropped
 *
 * Whether a token is drawn in this way or one step at a time, its random numbers and its row are the same, and so is the
 * token.
 */
export function countAccepted(draft: Int32Array, drawn: Int32Array, row: number): number {
  let accepted = 0;
  while (accepted < draft.length && drawn[row + accepted] === draft[accepted]) accepted++;
  return accepted;
}
