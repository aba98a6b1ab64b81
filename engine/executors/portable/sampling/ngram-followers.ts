/**
 * Calls `found` with each token that once followed the last `count` tokens of the history, in the order of their places;
 * -1 stands for an id that is no token of the vocabulary.
 *
 *   count 2    a b c a b x a b      the last two, a b, were followed by c and by x
 *
 * Each token of the history is read a few times, however much of it repeats (Knuth, Morris and Pratt). When the first i
 * of the last tokens are matched and the next token differs, the first fallback[i] of them still match.
 */
export function forEachFollower(history: Int32Array, count: number, found: (token: number) => void): void {
  const { length } = history;
  const last = length - count;
  if (last <= 0) return;
  const fallback = new Int32Array(count + 1);
  for (let i = 0, matched = 0; i < count; i++) {
    const token = history[last + i]!;
    if (token === -1) return;
    if (i === 0) continue;
    while (matched > 0 && token !== history[last + matched]) matched = fallback[matched]!;
    if (token === history[last + matched]) matched++;
    fallback[i + 1] = matched;
  }
  for (let i = 0, matched = 0; i < length; i++) {
    const token = history[i]!;
    if (matched === count) {
      if (token >= 0) found(token);
      matched = fallback[matched]!;
    }
    while (matched > 0 && token !== history[last + matched]) matched = fallback[matched]!;
    if (count > 0 && token === history[last + matched]) matched++;
  }
}
