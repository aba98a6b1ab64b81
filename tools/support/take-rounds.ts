/**
 * Runs `turn` for each side in each of `rounds` rounds. Every second round begins with the last side, so that a machine
 * whose speed drifts is as unkind to one side as to the other.
 */
export async function takeRounds<S>(
  sides: readonly S[],
  rounds: number,
  turn: (side: S, round: number) => Promise<void> | void,
): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await turn(side, round);
}
