import { planChat } from '../../generation/chat-plan.js';
import type { Exchange } from '../openai/respond.js';
import type { OllamaContext } from './borrow.js';
import { answerText, guideOfFormat, reasoningOf } from './generation.js';
import { templateMessages } from './messages.js';
import type { ChatBody } from './schemas.js';

/** Answers POST /api/chat, whose body its schema has validated. */
export function chat(context: OllamaContext, request: ChatBody, exchange: Exchange): Promise<Response> {
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
      plan: async (model) =>
        planChat(model, {
          messages: templateMessages(messages),
          tools: request.tools?.map((tool) => tool.function),
          guide: await guideOfFormat(request.format, model),
          continueFinalMessage: isBegun,
          addGenerationPrompt: !isBegun,
          ...reasoningOf(request.think, model, asked),
        }),
    },
    exchange,
  );
}
