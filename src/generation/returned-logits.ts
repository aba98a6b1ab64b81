import type { TokenPiece } from '../../callbacks/token-request.js';
import type { TextPiece, TextRequest, TokenLogProb } from './text-generation.js';

/** A token of the prompt given those before it, and what would have been more probable. */
export interface PromptLogProb extends TokenLogProb {
  top: readonly TokenLogProb[];
}

/** The logits of a piece whose first `numTokens` tokens are shown, and what came with it of the prompt. */
export function logitsOf(piece: TokenPiece, numTokens: number, request: TextRequest): Partial<TextPiece> {
  const { tokens, generationLogits, contextLogits, contextLogProbs } = piece;
  const shown: Partial<TextPiece> = {};
  if (generationLogits !== undefined) {
    const vocabSize = tokens.length === 0 ? 0 : generationLogits.length / tokens.length;
    shown.generationLogits = generationLogits.subarray(0, numTokens * vocabSize);
  }
  if (contextLogits !== undefined) shown.contextLogits = contextLogits;
  if (contextLogProbs !== undefined) shown.contextLogProbs = promptLogProbs(piece, request);
  return shown;
}

function promptLogProbs(piece: TokenPiece, request: TextRequest): PromptLogProb[] {
  const { contextTopTokens: tokens, contextTopLogProbs: logProbs } = piece;
  const count = request.contextLogProbs ?? 0;
  return Array.from(piece.contextLogProbs!, (logProb, i) => ({
    token: request.promptTokens[i + 1]!,
    logProb,
    top: Array.from({ length: tokens ? count : 0 }, (_, k) => ({
      token: tokens![i * count + k]!,
      logProb: logProbs![i * count + k]!,
    })),
  }));
}
