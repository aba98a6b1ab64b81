/** A request for rows: the lengths of its sequences, in order, of which the first `taken` have been given out. */
export interface EncoderWork {
  readonly lengths: readonly number[];
  taken: number;
}

export interface EncoderBudget {
  maxNumTokens: number;
  maxNumSequences: number;
}

/** One sequence of a batch: its request, and its index among that request's sequences. */
export interface EncoderPick<Work> {
  work: Work;
  index: number;
}

/**
 * Takes the next batch. Requests take turns, one sequence each, in order of arrival, until the budget is full; a sequence
 * that no longer fits is passed over for shorter ones of other requests. So a request with thousands of texts does not hold
 * up one with a single text, and none starves: the oldest request is always first into an empty batch.
 *
 *   waiting   a: 5 5 5 5   b: 3   c: 9 2        budget 24 tokens
 *   batch     a:5 b:3 c:9 | a:5 c:2 | (a: 5 does not fit)
 *
 * Adds what it takes to each request's `taken`. @param waiting in order of arrival, each sequence within the budget
 */
export function takeEncoderBatch<Work extends EncoderWork>(
  waiting: readonly Work[],
  { maxNumTokens, maxNumSequences }: EncoderBudget,
): EncoderPick<Work>[] {
  const picks: EncoderPick<Work>[] = [];
  let tokens = 0;
  let candidates = waiting.filter((work) => work.taken < work.lengths.length);
  while (candidates.length > 0 && picks.length < maxNumSequences) {
    const again: Work[] = [];
    for (const work of candidates) {
      if (picks.length === maxNumSequences) break;
      const length = work.lengths[work.taken]!;
      if (tokens + length > maxNumTokens) continue;
      tokens += length;
      picks.push({ work, index: work.taken++ });
      if (work.taken < work.lengths.length) again.push(work);
    }
    candidates = again;
  }
  return picks;
}
