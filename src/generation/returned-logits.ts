import type { TokenPiece } from '../../callbacks/token-request.js';
import type { TextRequest, TokenLogProb } from './text-generation.js';

/** A token of the prompt given those before it, and what would have been more probable. */
export interface PromptLogProb extends TokenLogProb {
  top: readonly TokenLogProb[];
}

/** The logits of the first `numTokens` tokens of a piece: a stop string may hide the others. */
export function logitsOfShown({ tokens, generationLogits }: TokenPiece, numTokens: number): Float32Array {
  const vocabSize = tokens.length === 0 ? 0 : generationLogits!.length / tokens.length;
  return generationLogits!.subarray(0, numTokens * vocabSize);
}

/** Of each prompt token but the first, with as many others as were asked for. */
export function promptLogProbs(piece: TokenPiece, request: TextRequest): PromptLogProb[] {
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
