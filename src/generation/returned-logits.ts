import type { TokenPiece } from '../../callbacks/token-request.js';
import type { TextRequest, TokenLogProb } from './text-generation.js';

/** Log-prob of a prompt token given those before it; `top`: the most probable tokens in its place. */
export interface PromptLogProb extends TokenLogProb {
  top: readonly TokenLogProb[];
}

/** Logits of the first `numTokens` tokens of a piece: a stop string may hide the others. */
export function logitsOfShown({ tokens, generationLogits }: TokenPiece, numTokens: number): Float32Array {
  const vocabSize = tokens.length === 0 ? 0 : generationLogits!.length / tokens.length;
  return generationLogits!.subarray(0, numTokens * vocabSize);
}

/**
 * Log-probs of each prompt token but the first; each entry is made when it is asked for, out of the piece's tensors.
 */
export class PromptLogProbList {
  readonly length: number;
  readonly #piece: TokenPiece;
  readonly #promptTokens: ArrayLike<number>;
  /** Number of most probable tokens known for each prompt token. */
  readonly #count: number;

  constructor(
    piece: TokenPiece,
    { promptTokens, contextLogProbs = 0 }: Pick<TextRequest, 'promptTokens' | 'contextLogProbs'>,
  ) {
    this.length = piece.contextLogProbs!.length;
    this.#piece = piece;
    this.#promptTokens = promptTokens;
    this.#count = piece.contextTopTokens === undefined ? 0 : contextLogProbs;
  }

  own(index: number): TokenLogProb {
    return { token: this.#promptTokens[index + 1]!, logProb: this.#piece.contextLogProbs![index]! };
  }

  /** The most probable tokens in place of a prompt token, at most `most`. */
  top(index: number, most = this.#count): TokenLogProb[] {
    const { contextTopTokens: tokens, contextTopLogProbs: logProbs } = this.#piece;
    const top: TokenLogProb[] = [];
    for (let k = 0; k < Math.min(most, this.#count); k++) {
      const place = index * this.#count + k;
      top.push({ token: tokens![place]!, logProb: logProbs![place]! });
    }
    return top;
  }

  all(): PromptLogProb[] {
    return Array.from({ length: this.length }, (_, i) => ({ ...this.own(i), top: this.top(i) }));
  }
}
