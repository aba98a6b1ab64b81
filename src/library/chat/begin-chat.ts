import type { ChatMessage } from '../../../models/chat-message.js';
import { withPictures } from '../given-pictures.js';
import { checkChatOptions } from '../options/chat-options.js';
import type { AnsweringModel } from './answering-model.js';
import { ChatSession } from './chat-session.js';
import type { ChatSessionOptions } from './chat-types.js';
import { readyTools } from './ready-tools.js';
import { checkedMessages, loadedMessages } from './saved-chat.js';

const MAX_ROUNDS = 8;
const MAX_PARALLEL_CALLS = 8;
const MAX_RESULT_LENGTH = 65_536;

/** Begins a chat, or goes on with a saved one. @throws InvalidRequestError */
export async function beginChat(model: AnsweringModel, given: ChatSessionOptions): Promise<ChatSession> {
  checkChatOptions(given);
  const { system, messages = [], saved, tools = {}, whenFull = 'drop', ...rest } = given;
  const { maxRounds = MAX_ROUNDS, maxParallelCalls = MAX_PARALLEL_CALLS, ...others } = rest;
  const { maxResultLength = MAX_RESULT_LENGTH, ...settings } = others;
  const limits = { maxRounds, maxParallelCalls, maxResultLength };
  const setting = { model, tools: readyTools(tools), whenFull, ...limits };
  const said = saved === undefined ? checkedMessages(await withPictures(messages)) : loadedMessages(saved);
  return new ChatSession(setting, settings, system === undefined ? said : begunBy(system, said));
}

/** The conversation with another text of the system at its beginning. */
function begunBy(system: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const rest = messages[0]?.role === 'system' ? messages.slice(1) : messages;
  return [{ role: 'system', content: system }, ...rest];
}
