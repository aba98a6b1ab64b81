import { Random } from '../../support/random.js';

/** What is asked one after the other of a server that has computed the first turn. */
export const CASES = ['first turn', 'next turn', 'answer again', 'short edit', 'long edit'] as const;
export type Case = (typeof CASES)[number];

/** Seconds to the first token, or of the whole first turn, and tokens of the prompt that were computed. */
export interface Turn {
  seconds: number;
  computed: number;
}

/**
 * A chat in tokens. Weights are random, so the answer is one token, again and again, which a bias forces:
 *
 *   first turn       | first ................................ | answer
 *   next turn        | first ................................ | answer | question |
 *   answer again     | first ................................ |
 *   short edit       | first, without its end ......... | 40 others |
 *   long edit        | first, without its end .... | 600 others |
 */
export interface Chat {
  first: number[];
  question: number[];
  shortEdit: number[];
  longEdit: number[];
  answerToken: number;
}

const QUESTION_TOKENS = 24;
const [SHORT_EDIT, LONG_EDIT] = [40, 600];
/** Tokens that any vocabulary of the shapes has, and none of which ends an answer. */
const [LEAST, MOST] = [300, 30_000];

export function drawChat(length: number, round: number): Chat {
  const random = new Random(1000 + round);
  const draw = (count: number) => Array.from({ length: count }, () => LEAST + random.below(MOST - LEAST));
  return {
    first: draw(length),
    question: draw(QUESTION_TOKENS),
    shortEdit: draw(SHORT_EDIT),
    longEdit: draw(LONG_EDIT),
    answerToken: LEAST + round,
  };
}
