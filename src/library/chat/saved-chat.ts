import { isObject, shown } from '../../../base/option-values.js';
import type { ChatMessage } from '../../../models/chat-message.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { readMessages } from '../../schemas/messages.js';

/** What a saved chat says it is. */
export const SAVED_CHAT_KIND = 'skein-chat';
export const SAVED_CHAT_VERSION = 1;

/** A chat as plain JSON. `/save` of `skein chat` writes the same form. */
export interface SavedChat {
  kind: typeof SAVED_CHAT_KIND;
  version: typeof SAVED_CHAT_VERSION;
  /** Name of the model that answered. */
  model: string;
  /** Settings of the terminal's chat; a program's chat has its own. */
  settings: Record<string, unknown>;
  messages: ChatMessage[];
}

/** A copy that shares nothing with the chat. */
export function savedChat(model: string, messages: readonly ChatMessage[]): SavedChat {
  const copy = structuredClone(messages) as ChatMessage[];
  return { kind: SAVED_CHAT_KIND, version: SAVED_CHAT_VERSION, model, settings: {}, messages: copy };
}

/** The messages of a saved chat. @throws InvalidRequestError that says what is wrong with it */
export function loadedMessages(saved: unknown): ChatMessage[] {
  const refuse = (what: string) => {
    throw new InvalidRequestError(`saved ${what}`, 'saved');
  };
  if (typeof saved === 'string') refuse('is a text; it must be the object, which JSON.parse makes of it.');
  if (!isObject(saved)) return refuse(`is ${shown(saved)}; it must be what save() of a chat returned.`)!;
  const { kind, version, messages } = saved;
  if (kind !== SAVED_CHAT_KIND) refuse(`has kind ${shown(kind)}; it must be '${SAVED_CHAT_KIND}'.`);
  if (version !== SAVED_CHAT_VERSION)
    refuse(`has version ${shown(version)}; this Skein reads version ${SAVED_CHAT_VERSION}.`);
  if (!Array.isArray(messages))
    return refuse(`has messages ${shown(messages)}; it must be a list of messages.`)!;
  return checkedMessages(messages, 'saved.');
}

/**
 * Messages of a program in a form that is the chat's own. @param place prefix of their names in errors
 * @throws InvalidRequestError as readMessages
 */
export function checkedMessages(messages: readonly unknown[], place = ''): ChatMessage[] {
  if (messages.length === 0) return [];
  try {
    readMessages(messages);
  } catch (error) {
    if (!(error instanceof InvalidRequestError) || place === '') throw error;
    throw new InvalidRequestError(`The saved chat is damaged: ${error.message}`, `${place}${error.param}`);
  }
  return structuredClone(messages) as ChatMessage[];
}
