import type { TokenPiece, TokenRequest, TokenStream } from '../../callbacks/token-request.js';
import type { InProcessHost } from '../../host/in-process-host.js';

/**
 * All that came of one sequence, in one piece, but times; `told` counts pieces with what is reported once.
 */
export async function wholeOf(stream: TokenStream, onPiece: (piece: TokenPiece) => void = () => {}) {
  const pieces: TokenPiece[] = [];
  for await (const piece of stream) {
    pieces.push(piece);
    onPiece(piece);
  }
  const joined = (pick: (piece: TokenPiece) => ArrayLike<number> | undefined) =>
    pieces.flatMap((piece) => Array.from(pick(piece) ?? []));
  const last = pieces.at(-1)!;
  return {
    tokens: joined(({ tokens }) => tokens),
    logProbs: joined(({ logProbs }) => logProbs),
    topTokens: joined(({ topTokens }) => topTokens),
    topLogProbs: joined(({ topLogProbs }) => topLogProbs),
    generationLogits: joined(({ generationLogits }) => generationLogits),
    contextLogits: joined(({ contextLogits }) => contextLogits),
    contextLogProbs: joined(({ contextLogProbs }) => contextLogProbs),
    contextTopTokens: joined(({ contextTopTokens }) => contextTopTokens),
    told: pieces.filter(({ cachedTokens }) => cachedTokens !== undefined).length,
    cumLogProb: last.cumLogProb,
    seed: last.seed,
    finishReason: last.finishReason,
  };
}

/** What comes of each request, sequence by sequence; all are submitted at once. */
export function allOf(
  host: InProcessHost,
  requests: readonly TokenRequest[],
  onPiece?: (piece: TokenPiece) => void,
) {
  return Promise.all(
    requests.map((request) =>
      Promise.all(host.submitSeveral(request).map((stream) => wholeOf(stream, onPiece))),
    ),
  );
}
