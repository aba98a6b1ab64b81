import { planChat } from '../../generation/chat-plan.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { inOtherWords } from '../openai/other-words.js';
import type { Exchange } from '../openai/respond.js';
import { answerWithoutText } from './answer.js';
import { asGenerator, keepAliveOf, letGo, type OllamaContext, withModel } from './borrow.js';
import { generateAnswer, guideOfFormat, OLLAMA_FIELDS, reasoningOf } from './generation.js';
import { templateMessages } from './messages.js';
import type { ChatBody } from './schemas.js';
import { Timings } from './timings.js';

/** Answers POST /api/chat, whose body its schema has validated. */
export async function chat(context: OllamaContext, request: ChatBody, exchange: Exchange): Promise<Response> {
  const timings = new Timings();
  const { messages = [], model: asked, keep_alive: keepAlive } = request;
  if (messages.length === 0 && keepAliveOf(keepAlive) === 0) {
    await letGo(context, asked);
    return answerWithoutText(asked, 'message', 'unload');
  }
  return withModel(context, asked, { keepAlive, signal: exchange.signal }, async (found) => {
    const model = asGenerator(found, asked, 'chat');
    timings.noteLoaded();
    if (messages.length === 0) return answerWithoutText(asked, 'message', 'load');
    return answerTo(context, request, { model, timings }, exchange);
  });
}

function answerTo(
  context: OllamaContext,
  request: ChatBody,
  { model, timings }: { model: ServedGenerator; timings: Timings },
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  const { messages = [], model: asked } = request;
  return inOtherWords(OLLAMA_FIELDS, () =>
    registry.accept(caller, requestId, async (live) => {
      // A last message of the assistant is gone on with.
      const isBegun = messages.at(-1)?.role === 'assistant';
      const plan = await planChat(model, {
        messages: templateMessages(messages),
        tools: request.tools?.map((tool) => tool.function),
        guide: await guideOfFormat(request.format, model),
        continueFinalMessage: isBegun,
        addGenerationPrompt: !isBegun,
        ...reasoningOf(request.think, model, asked),
      });
      const planned = { model, plan, timings, place: 'message', withContext: false } as const;
      return generateAnswer(context, request, planned, exchange, live);
    }),
  );
}
