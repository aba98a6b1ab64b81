/** Tokens of one sequence, and the place where an attempt has them. */
export interface FramePlace {
  /** Tokens of the sequence in front of these, known ones included. */
  index: number;
  /** Number of tokens; 0 where only an end is reported, or progress of the prompt. */
  count: number;
  /** The sequence ends with them. */
  isEnd: boolean;
}

/**
 * What becomes of tokens that an attempt brings:
 *
 *   take      those from `skip` on are the next ones
 *   repeat    all of them are known already
 *   gap       tokens in front of them have not come, and will not come any more: the attempt has to be given up
 *   diverged  the sequence ends, or is repeated, where it went on further before: this attempt is of another answer
 */
export type FrameVerdict = { kind: 'take'; skip: number } | { kind: 'repeat' | 'gap' | 'diverged' };

/**
 * A token is accepted once, however often it comes:
 *
 *   accepted   . . . . . . . |
 *   frame          [index . . . . count)
 *   skip           |---------|
 *
 * @param accepted number of tokens accepted of the sequence @param isEnded nothing more of it is wanted
 */
export function verdictOf(
  accepted: number,
  isEnded: boolean,
  { index, count, isEnd }: FramePlace,
): FrameVerdict {
  if (isEnded) return { kind: 'repeat' };
  if (index > accepted) return { kind: 'gap' };
  const end = index + count;
  if (end < accepted) return { kind: isEnd ? 'diverged' : 'repeat' };
  if (end === accepted && count > 0 && !isEnd) return { kind: 'repeat' };
  return { kind: 'take', skip: accepted - index };
}
