import type { ChatMessage } from '../../../models/chat-template.js';
import { messageText } from '../messages.js';
import { oneCallEach } from '../prompt/call-forms.js';
import { foldSystem } from '../prompt/role-forms.js';
import { callsOf } from '../tools/tool-messages.js';

/**
 * A conversation in the only form of which harmony templates leave nothing out: one message of the system, at
 * the beginning; one call in a message, followed by its results; reasoning in `thinking`, where a call's
 * message has its content too. A result without a call is the user's.
 */
export function harmonyMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  let isCalling = false;
  return oneCallEach(foldSystem(messages)).map((message) => {
    if (message.role === 'tool') return isCalling ? message : { role: 'user', content: messageText(message) };
    if (message.role !== 'assistant') return message;
    isCalling = callsOf(message).length > 0;
    return withThinking(message, isCalling);
  });
}

function withThinking(message: ChatMessage, isCalling: boolean): ChatMessage {
  const { reasoning_content: reasoning, ...rest } = message;
  const thinking = typeof reasoning === 'string' ? reasoning : '';
  if (!isCalling) return thinking === '' ? rest : { ...rest, thinking };
  const all = [thinking, messageText(message)].filter((text) => text !== '').join('\n\n');
  return { ...rest, content: '', ...(all !== '' && { thinking: all }) };
}
