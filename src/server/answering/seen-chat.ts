import type { ChatMessage } from '../../../models/chat-template.js';
import type { ChatAsk } from '../../generation/chat-plan.js';
import { type SeenMessages, seeMessages } from '../../generation/pictures/see-messages.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import type { AnsweringServices } from './services.js';

type SeeingModel = Pick<ServedGenerator, 'sight' | 'whyBlind'>;
type SeeingExchange = Pick<Exchange, 'terms'> & { signal?: AbortSignal | undefined };

type SeeingServices = Pick<AnsweringServices, 'pictureSources'>;

/**
 * Looks at the pictures of a request's conversation, whose memory the request holds. @param param the request's name of the messages
 * @throws as seeMessages; ApiError 429, 400
 */
export function seenMessages(
  { pictureSources }: SeeingServices,
  model: SeeingModel,
  messages: readonly ChatMessage[],
  { signal, terms }: SeeingExchange,
  param?: string,
): Promise<SeenMessages> {
  const { caller, memory } = terms;
  const hold = (bytes: number) => memory.addAnswer(bytes);
  return seeMessages(model, messages, { sources: pictureSources(caller), signal, hold, param });
}

/** What a chat has of its messages, none of which is left out. @throws as seenMessages */
export async function seenChat(
  services: SeeingServices,
  model: SeeingModel,
  messages: readonly ChatMessage[],
  exchange: SeeingExchange,
): Promise<Pick<ChatAsk, 'messages' | 'pictures' | 'signal'>> {
  const seen = await seenMessages(services, model, messages, exchange);
  return { messages: seen.messages, pictures: seen.picturesOf(seen.messages), signal: exchange.signal };
}

/** @throws ApiError where log-probs of a prompt are asked for that has pictures, whose tokens have none */
export function checkPromptLogProbs(
  { prompt_logprobs: asked }: { prompt_logprobs?: number | undefined },
  { pictures = [] }: Pick<ChatAsk, 'pictures'>,
): void {
  if (asked === undefined || pictures.length === 0) return;
  const param = 'prompt_logprobs';
  throw new ApiError(400, `'${param}' is refused with pictures: their tokens have no log-probs.`, { param });
}
