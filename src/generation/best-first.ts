import type { TextLogProb } from './text-generation.js';

/** Sorts answers by the mean log-prob of their tokens, the greatest first; an answer without tokens comes last. */
export function bestFirst<Answer>(
  answers: readonly Answer[],
  logProbsOf: (answer: Answer) => readonly Pick<TextLogProb, 'logProb'>[],
): Answer[] {
  const rated = answers.map((answer) => ({ answer, mean: meanOf(logProbsOf(answer)) }));
  rated.sort((a, b) => (a.mean === b.mean ? 0 : b.mean - a.mean));
  return rated.map(({ answer }) => answer);
}

function meanOf(logProbs: readonly Pick<TextLogProb, 'logProb'>[]): number {
  if (logProbs.length === 0) return Number.NEGATIVE_INFINITY;
  return logProbs.reduce((sum, { logProb }) => sum + logProb, 0) / logProbs.length;
}
