import { planChat } from '../../generation/chat-plan.js';
import { inOtherWords } from '../openai/other-words.js';
import type { Exchange } from '../openai/respond.js';
import type { RouteContext } from '../openai/route-context.js';
import { answerWithoutText } from './answer.js';
import { asGenerator, findServed, keepAliveOf } from './borrow.js';
import { generateAnswer, guideOfFormat, OLLAMA_FIELDS, reasoningOf } from './generation.js';
import { templateMessages } from './messages.js';
import type { ChatBody } from './schemas.js';
import { Timings } from './timings.js';

/** Answers POST /api/chat, whose body its schema has validated. */
export function chat(context: RouteContext, request: ChatBody, exchange: Exchange): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  const timings = new Timings();
  const keepAlive = keepAliveOf(request.keep_alive);
  const { messages = [], model: asked } = request;
  return inOtherWords(OLLAMA_FIELDS, () =>
    registry.accept(caller, requestId, async (live) => {
      const model = asGenerator(findServed(context, asked), asked, 'chat');
      timings.noteLoaded();
      if (messages.length === 0) {
        live.release();
        return answerWithoutText(asked, 'message', keepAlive === 0 ? 'unload' : 'load');
      }
      const isBegun = messages.at(-1)!.role === 'assistant';
      const plan = await planChat(model, {
        messages: templateMessages(messages),
        tools: request.tools?.map((tool) => tool.function),
        guide: await guideOfFormat(request.format, model),
        // A last message of the assistant is gone on with.
        continueFinalMessage: isBegun,
        addGenerationPrompt: !isBegun,
        ...reasoningOf(request.think, model, asked),
      });
      const planned = { model, plan, timings, place: 'message', withContext: false } as const;
      return generateAnswer(context, request, planned, exchange, live);
    }),
  );
}
