import type { ChatMessage } from '../../../models/chat-message.js';
import { withPictures } from '../given-pictures.js';
import { checkChatOptions } from '../options/chat-options.js';
import type { AnsweringModel } from './answering-model.js';
import { ChatSession } from './chat-session.js';
import type { ChatSessionOptions } from './chat-types.js';
import { pendingCalls } from './pending-calls.js';
import { readyTools } from './ready-tools.js';
import { checkedMessages, loadedMessages } from './saved-chat.js';

/** Limits of a chat that names no other ones. */
export const CHAT_LIMITS = { maxRounds: 8, maxParallelCalls: 8, maxResultLength: 65_536 } as const;

/** Begins a chat, or continues a saved one. @throws InvalidRequestError */
export async function beginChat(model: AnsweringModel, given: ChatSessionOptions): Promise<ChatSession> {
  checkChatOptions(given);
  const { system, messages = [], saved, tools = {}, whenFull = 'drop', ...rest } = given;
  const { maxRounds, maxParallelCalls, maxResultLength, ...settings } = rest;
  const limits = {
    maxRounds: maxRounds ?? CHAT_LIMITS.maxRounds,
    maxParallelCalls: maxParallelCalls ?? CHAT_LIMITS.maxParallelCalls,
    maxResultLength: maxResultLength ?? CHAT_LIMITS.maxResultLength,
  };
  const setting = { model, tools: readyTools(tools), whenFull, ...limits };
  const said = saved === undefined ? checkedMessages(await withPictures(messages)) : loadedMessages(saved);
  const begun = system === undefined ? said : begunBy(system, said);
  return new ChatSession(setting, settings, begun, await pendingCalls(begun, setting.tools));
}

/** The conversation with another text of the system at its beginning. */
function begunBy(system: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const rest = messages[0]?.role === 'system' ? messages.slice(1) : messages;
  return [{ role: 'system', content: system }, ...rest];
}
