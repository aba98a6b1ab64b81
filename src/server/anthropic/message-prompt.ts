import type { ChatAsk } from '../../generation/chat-plan.js';
import type { Warn } from '../web/warnings.js';
import { conversationOf } from './conversation.js';
import type { CountTokensRequest } from './schemas/messages.js';
import { chosenTools } from './tool-fields.js';

/** The chat that a request asks for, without the form of its answer. @throws ApiError in the words of chat. */
export function askedChat(request: CountTokensRequest, warn: Warn): ChatAsk {
  const { messages, continuesLast } = conversationOf(request, warn);
  return {
    ...chosenTools(request, warn),
    messages,
    addGenerationPrompt: !continuesLast,
    continueFinalMessage: continuesLast,
    variables: request.chat_template_kwargs,
    thinks: request.thinking !== undefined && request.thinking.type !== 'disabled',
    reasoningEffort: request.output_config?.effort,
  };
}
