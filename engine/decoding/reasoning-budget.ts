import type { LogitBias } from '../packed-call/sampling-batch.js';

/** Number of first generated tokens among which reasoning may begin. */
const BEGINS_WITHIN = 16;

/** How much a request's sequences may reason. */
export interface ReasoningLimits {
  /** Most tokens of reasoning, without its markers. */
  tokens: number;
  /** Token that ends reasoning. */
  endToken: number;
  /** Token that begins it, among the first 16 of an answer; -1: answers begin within reasoning. */
  beginToken: number;
}

/**
 * A budget of tokens for reasoning, after which the token that ends it is the only one that can be drawn:
 *
 *   prompt ... <think> | r r r r r </think> a a a        budget 5: the sixth token is forced
 *
 * It depends on nothing but the sequence's own tokens, so a token that is drawn again after a pause is forced again.
 */
export class ReasoningBudget {
  readonly #limits: ReasoningLimits;
  readonly #vocabSize: number;

  constructor(limits: ReasoningLimits, vocabSize: number) {
    this.#limits = limits;
    this.#vocabSize = vocabSize;
  }

  /**
   * Logits that leave the end of reasoning alone, for the token after tokens[0, length), where the budget is
   * spent; else null.
   * @param promptLength length of the client's prompt: reasoning is looked for after it
   */
  biasBehind(tokens: Int32Array, promptLength: number, length: number): LogitBias | null {
    const { tokens: budget, endToken } = this.#limits;
    if (length - promptLength < budget) return null;
    const begin = this.#begin(tokens.subarray(promptLength, length));
    if (begin < 0 || length - promptLength - begin < budget) return null;
    // Where it ended by itself, it did so within the budget: no more tokens than that are looked at.
    const reasoned = tokens.subarray(promptLength + begin, promptLength + begin + budget + 1);
    if (reasoned.subarray(0, length - promptLength - begin).includes(endToken)) return null;
    return onlyToken(endToken, this.#vocabSize);
  }

  /** Index of the first token of reasoning; -1: there is none yet, or none at all. */
  #begin(generated: Int32Array): number {
    const { beginToken } = this.#limits;
    if (beginToken < 0) return 0;
    const marker = generated.subarray(0, BEGINS_WITHIN).indexOf(beginToken);
    return marker < 0 ? -1 : marker + 1;
  }
}

let last: { token: number; bias: LogitBias } | null = null;

/** Values for a whole vocabulary, of which the last ones made are kept: all requests of a model end reasoning alike. */
function onlyToken(token: number, vocabSize: number): LogitBias {
  if (last?.token === token && last.bias.values.length === vocabSize) return last.bias;
  const values = new Float32Array(vocabSize).fill(Number.NEGATIVE_INFINITY);
  values[token] = 0;
  last = { token, bias: { tokens: null, values } };
  return last.bias;
}
