import { type ChatAsk, type ChatPlan, planChat } from '../../generation/chat-plan.js';
import type { SeenMessages } from '../../generation/pictures/see-messages.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { planWithin } from '../answering/plan-within.js';
import { seenMessages } from '../answering/seen-chat.js';
import type { Exchange } from '../web/exchange.js';
import type { Warn } from '../web/warnings.js';
import { answerText, guideOfFormat, reasoningOf } from './generation.js';
import { templateMessages } from './messages.js';
import type { ChatBody } from './schemas.js';
import type { OllamaServices } from './services.js';

/** Answers POST /api/chat, whose body its schema has validated. */
export function chat(context: OllamaServices, request: ChatBody, exchange: Exchange): Promise<Response> {
  const { messages = [], model: asked } = request;
  // A last message of the assistant is gone on with.
  const isBegun = messages.at(-1)?.role === 'assistant';
  return answerText(
    context,
    request,
    {
      isEmpty: messages.length === 0,
      place: 'message',
      what: 'chat',
      withContext: false,
      plan: async (model) => {
        const seen = await seenMessages(context, model, templateMessages(messages), exchange);
        const ask = {
          messages: seen.messages,
          signal: exchange.signal,
          tools: request.tools?.map((tool) => tool.function),
          guide: await guideOfFormat(request.format, model),
          continueFinalMessage: isBegun,
          addGenerationPrompt: !isBegun,
          ...reasoningOf(request.think, model, asked),
        };
        if (request.truncate === false)
          return planChat(model, { ...ask, pictures: seen.picturesOf(seen.messages) });
        return planEnd(model, ask, seen, exchange.warn);
      },
    },
    exchange,
  );
}

/** Plans the end of a chat that the context can hold, and warns where that is not all of it. @throws as planChat */
async function planEnd(
  model: ServedGenerator,
  ask: ChatAsk,
  { picturesOf }: Pick<SeenMessages, 'picturesOf'>,
  warn: Warn,
): Promise<ChatPlan> {
  let kept = ask.messages.length;
  const planSome = (messages: ChatAsk['messages']) => {
    kept = messages.length;
    return planChat(model, { ...ask, messages, pictures: picturesOf(messages) });
  };
  const plan = await planWithin(model, ask.messages, planSome, 1);
  const leftOut = ask.messages.length - kept;
  if (leftOut > 0) {
    const words = leftOut === 1 ? 'The oldest message was' : `The ${leftOut} oldest messages were`;
    warn(`${words} left out: the chat is longer than the context of ${model.maxSeqLen} tokens.`);
  }
  return plan;
}
