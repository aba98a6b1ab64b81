import { field, says } from '../../../base/named-text.js';
import type { ReasoningBudgetOptions } from '../../../callbacks/token-request.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { ChatPlan } from '../chat-plan.js';
import type { TextCodec } from '../text-model.js';

/** A limit of reasoning that a client asks for. */
export interface AskedBudget {
  /** Most tokens; below 0: no limit. */
  tokens: number;
  /** The client's name for it, for errors. */
  param: string;
  /** Called with the reason where the model's vocabulary allows no budget; absent: that is an error. */
  onImpossible?: ((why: string) => void) | undefined;
}

/**
 * Budget of an answer's reasoning in tokens of the model; undefined: none is asked for, or the answer has no reasoning.
 * @throws InvalidRequestError where the model's vocabulary has no token for the end of reasoning.
 */
export async function reasoningBudget(
  codec: TextCodec,
  { reasoning, harmony }: Pick<ChatPlan, 'reasoning' | 'harmony'>,
  asked: AskedBudget | undefined,
): Promise<ReasoningBudgetOptions | undefined> {
  if (asked === undefined || asked.tokens < 0 || reasoning === null) return undefined;
  if (harmony !== null) return refused(asked, HARMONY_WHY);
  const { start, marks } = reasoning;
  const endToken = await markerToken(codec, marks.end, asked);
  const isOpen = start !== 'maybe';
  const beginToken = isOpen ? undefined : await markerToken(codec, marks.begin, asked);
  if (endToken === null || beginToken === null) return undefined;
  return { tokens: asked.tokens, endToken, beginToken };
}

/** Token of a marker; null: it has none, which has been reported. */
async function markerToken(codec: TextCodec, text: string, asked: AskedBudget): Promise<number | null> {
  const tokens = await codec.encodePiece(text);
  if (tokens.length === 1) return tokens[0]!;
  refused(asked, `this model writes ${text} in ${tokens.length} tokens, and a budget can only force one`);
  return null;
}

const HARMONY_WHY =
  'this model reasons in any number of messages, of which a budget could only end one; reasoning_effort says how much';

/** Reports that there can be no budget. @throws InvalidRequestError where the client has to know */
function refused({ param, onImpossible }: AskedBudget, why: string): undefined {
  if (onImpossible === undefined)
    throw new InvalidRequestError(says`${field(param)} is refused: ${why}.`, param, 'unsupported_parameter');
  onImpossible(why);
}
