import { writtenJson } from '../../../base/written-json.js';
import type { ChatTextPart } from '../../../models/chat-message.js';
import type { ChatMessage } from '../../../models/chat-template.js';
import { type PicturePart, pictureAt } from '../../generation/pictures/picture-part.js';
import { ApiError } from '../web/errors.js';
import type { OllamaMessage } from './schemas.js';

/** A call that has no result yet. */
interface OpenCall {
  id: string;
  name: string;
}

/**
 * Messages in the form that templates know. Ollama's calls need no ids: a result is that of the call which it names, else
 * of the first that has none.
 */
export function templateMessages(messages: readonly OllamaMessage[]): ChatMessage[] {
  let open: OpenCall[] = [];
  let count = 0;
  return messages.map((message, index): ChatMessage => {
    const { role, content = '', thinking, tool_calls: calls = [] } = message;
    const result: ChatMessage = { role, content: withImages(content, message, `messages[${index}].images`) };
    if (thinking !== undefined && role === 'assistant') result.reasoning_content = thinking;
    if (role === 'assistant' && calls.length > 0) {
      const made = calls.map(({ id, function: { name, arguments: args = {} } }) => {
        const call = { name, arguments: writtenJson(args) };
        return { id: id ?? callId(count++), type: 'function', function: call };
      });
      open = made.map(({ id, function: { name } }) => ({ id, name }));
      result.tool_calls = made;
    }
    if (role === 'tool') {
      const answered = answeredCall(message, open);
      open = open.filter((call) => call !== answered);
      const name = message.tool_name ?? answered?.name;
      const id = message.tool_call_id ?? answered?.id;
      if (name !== undefined) result.name = name;
      if (id !== undefined) result.tool_call_id = id;
    }
    return result;
  });
}

function answeredCall({ tool_name: name, tool_call_id: id }: OllamaMessage, open: readonly OpenCall[]) {
  if (id !== undefined) return open.find((call) => call.id === id);
  return open.find((call) => name === undefined || call.name === name);
}

/** An id of nine letters and digits, the only form that all templates take. */
function callId(count: number): string {
  return `call${String(count).padStart(5, '0')}`;
}

/**
 * A text after the pictures that come with it, as Ollama has them. @param place name of the field with the
 * pictures
 * @throws ApiError for pictures of others than the user and tools
 */
export function withImages(
  text: string,
  { role, images = [] }: Pick<OllamaMessage, 'role' | 'images'>,
  place: string,
): NonNullable<ChatMessage['content']> {
  if (images.length === 0) return text;
  if (role !== 'user' && role !== 'tool') {
    const message = `'${place}' holds pictures in a message of the role '${role}', which has none here.`;
    throw new ApiError(400, message, { param: place, code: 'unsupported_parameter' });
  }
  const parts: (ChatTextPart | PicturePart)[] = images.map((base64, i) =>
    pictureAt({ base64 }, `${place}[${i}]`),
  );
  return text === '' ? parts : [...parts, { type: 'text', text }];
}
