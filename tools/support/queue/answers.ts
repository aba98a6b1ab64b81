import type { FinishReason, TokenPiece, TokenRequest } from '../../../callbacks/token-request.js';
import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';

/** What came of one sequence. */
export interface Answer {
  tokens: number[];
  logProbs: number[];
  topTokens: number[];
  topLogProbs: number[];
  contextLogProbs: number[];
  cumLogProb: number | null;
  seed: bigint | null;
  finishReason: FinishReason | null;
}

/** All pieces of a stream as one. */
export async function answerOf(stream: AsyncIterable<TokenPiece>): Promise<Answer> {
  const answer: Answer = {
    tokens: [],
    logProbs: [],
    topTokens: [],
    topLogProbs: [],
    contextLogProbs: [],
    cumLogProb: null,
    seed: null,
    finishReason: null,
  };
  for await (const piece of stream) {
    answer.tokens.push(...piece.tokens);
    answer.logProbs.push(...(piece.logProbs ?? []));
    answer.topTokens.push(...(piece.topTokens ?? []));
    answer.topLogProbs.push(...(piece.topLogProbs ?? []));
    answer.contextLogProbs.push(...(piece.contextLogProbs ?? []));
    answer.cumLogProb = piece.cumLogProb ?? answer.cumLogProb;
    answer.seed = piece.seed ?? null;
    answer.finishReason = piece.finishReason;
  }
  return answer;
}

/** Answers of all sequences of a request. */
export function ask(gateway: QueueGateway, model: string, request: TokenRequest): Promise<Answer[]> {
  return Promise.all(gateway.submit(model, request).map(answerOf));
}
