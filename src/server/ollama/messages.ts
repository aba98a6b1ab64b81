import { writtenJson } from '../../../base/written-json.js';
import type { ChatMessage } from '../../../models/chat-template.js';
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
    refuseImages(message.images, `messages[${index}].images`);
    const { role, content, thinking, tool_calls: calls = [] } = message;
    const result: ChatMessage = { role, content: content ?? '' };
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

/** @throws ApiError where there are pictures: no model here sees */
export function refuseImages(images: readonly string[] | undefined, param: string): void {
  if (images === undefined || images.length === 0) return;
  throw new ApiError(400, `'${param}' holds pictures, and the model reads text alone.`, {
    param,
    code: 'unsupported_parameter',
  });
}
