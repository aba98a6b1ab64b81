import type { ChatMessage } from '../../../models/chat-template.js';
import type { ChatPlan } from '../../generation/chat-plan.js';
import { tooLong, truncated } from '../../generation/truncation.js';
import type { ServedGenerator } from '../../serving/served-model.js';

/**
 * Plans as much of a conversation as leaves room for an answer: all of it, else without its oldest messages.
 * @param plan plans some of the messages. @param answerTokens tokens of the answer. @throws as `plan`.
 */
export async function planWithin<Plan extends Pick<ChatPlan, 'promptTokens'>>(
  { maxInputLen, maxSeqLen }: Pick<ServedGenerator, 'maxInputLen' | 'maxSeqLen'>,
  messages: readonly ChatMessage[],
  plan: (messages: readonly ChatMessage[]) => Promise<Plan>,
  answerTokens: number,
): Promise<Plan> {
  const fits = (one: Plan | null): one is Plan => {
    const length = one?.promptTokens.length ?? Number.POSITIVE_INFINITY;
    return length <= maxInputLen && length + answerTokens <= maxSeqLen;
  };
  const whole = await plan(messages).catch(tooLong);
  if (fits(whole)) return whole;
  const kept = await truncated(messages, async (candidate) => fits(await plan(candidate).catch(tooLong)));
  return plan(kept);
}
