import { field, says } from '../../../base/named-text.js';
import type { ReasoningBudgetOptions } from '../../../callbacks/token-request.js';
import { InvalidRequestError } from '../errors.js';
import type { TextCodec } from '../text-model.js';
import { type ReasoningStart, THINK_BEGIN, THINK_END } from './reasoning-parser.js';

/** A limit of reasoning that a client asks for. */
export interface AskedBudget {
  /** Most tokens; below 0: no limit. */
  tokens: number;
  /** The client's name for it, for errors. */
  param: string;
}

/**
 * Budget of an answer's reasoning in tokens of the model; undefined: none is asked for, or the answer has no reasoning.
 * @throws InvalidRequestError where the model's vocabulary has no token for the end of reasoning.
 */
export async function reasoningBudget(
  codec: TextCodec,
  reasoning: ReasoningStart | null,
  asked: AskedBudget | undefined,
): Promise<ReasoningBudgetOptions | undefined> {
  if (asked === undefined || asked.tokens < 0 || reasoning === null) return undefined;
  const { tokens, param } = asked;
  const endToken = await markerToken(codec, THINK_END, param);
  if (reasoning === 'open') return { tokens, endToken };
  return { tokens, endToken, beginToken: await markerToken(codec, THINK_BEGIN, param) };
}

async function markerToken(codec: TextCodec, text: string, param: string): Promise<number> {
  const tokens = await codec.encodePiece(text);
  if (tokens.length === 1) return tokens[0]!;
  throw new InvalidRequestError(
    says`${field(param)} is refused: this model writes ${text} in ${tokens.length} tokens, and a budget can only force one.`,
    param,
    'unsupported_parameter',
  );
}
