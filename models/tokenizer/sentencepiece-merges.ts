/**
 * Makes the merges of a SentencePiece BPE vocabulary, which stores only pieces and scores. SentencePiece joins the two
 * neighbours whose union has the best score; so every way to cut a piece into two other pieces is a merge, ranked by
 * the score of the piece. Equal scores go by the longer left part, as in Hugging Face's conversion.
 *
 * @param isPiece true for the id of an ordinary piece; control, byte and user-defined tokens are never merged.
 */
export function sentencePieceMerges(
  tokens: readonly string[],
  scores: ArrayLike<number>,
  isPiece: (id: number) => boolean,
): [string, string][] {
  const pieces = new Set(tokens.filter((_, id) => isPiece(id)));
  const merges: { left: string; right: string; score: number }[] = [];
  for (const [id, token] of tokens.entries()) {
    if (!isPiece(id)) continue;
    for (let cut = 1; cut < token.length; cut++) {
      const left = token.slice(0, cut);
      const right = token.slice(cut);
      if (pieces.has(left) && pieces.has(right)) merges.push({ left, right, score: scores[id]! });
    }
  }
  merges.sort(
    (a, b) => b.score - a.score || b.left.length - a.left.length || b.right.length - a.right.length,
  );
  return merges.map(({ left, right }) => [left, right]);
}
