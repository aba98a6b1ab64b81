import { createHash } from 'node:crypto';
import type { ChatMessage } from '../../../models/chat-template.js';
import { callsOf } from '../tools/tool-messages.js';

/**
 * The same calls in other forms, the nearest to the given one first, for templates that refuse them: with ids and
 * arguments of the only form that some take, then with one call in each message.
 */
export function* callForms(given: readonly ChatMessage[]): Generator<readonly ChatMessage[]> {
  if (!given.some((message) => callsOf(message).length > 0)) return;
  const plain = plainCalls(given);
  yield plain;
  const apart = oneCallEach(plain);
  if (apart !== plain) yield apart;
}

/** Calls with ids of nine letters and digits, as Mistral's templates want them, and with objects for arguments. */
function plainCalls(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const ids = new Map<unknown, string>();
  let open: string[] = [];
  let count = 0;
  return messages.map((message) => {
    const calls = callsOf(message);
    if (calls.length > 0) {
      const made = calls.map((call) => {
        const id = call.id == null ? `call${String(count++).padStart(5, '0')}` : shortId(call.id);
        ids.set(call.id, id);
        return {
          ...call,
          id,
          function: { ...call.function, arguments: argumentsObject(call.function.arguments) },
        };
      });
      open = made.map(({ id }) => id);
      return { ...message, tool_calls: made };
    }
    if (message.role !== 'tool') return message;
    const id = ids.get(message.tool_call_id) ?? open[0];
    open = open.filter((one) => one !== id);
    return id === undefined ? message : { ...message, tool_call_id: id };
  });
}

function shortId(id: unknown): string {
  const text = String(id);
  if (/^[a-zA-Z0-9]{9}$/.test(text)) return text;
  return createHash('sha256').update(text).digest('hex').slice(0, 9);
}

/**
 * Arguments as an object. Model output that is no object becomes an argument itself, so that it is not lost.
 */
function argumentsObject(given: unknown): unknown {
  let value = given;
  try {
    if (typeof given === 'string') value = JSON.parse(given);
  } catch {
    // A call that was cut, or that the model wrote wrongly.
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  // Text that is an object stays text: its numbers keep their digits.
  return isObject ? given : { arguments: given };
}

/** Messages with one call each, followed by its results, for templates that know no parallel calls. */
export function oneCallEach(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  if (!messages.some((message) => callsOf(message).length > 1)) return messages;
  const apart: ChatMessage[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    const calls = callsOf(message);
    if (calls.length < 2) {
      apart.push(message);
      continue;
    }
    const results: ChatMessage[] = [];
    while (messages[at + 1]?.role === 'tool') results.push(messages[++at]!);
    const { content: _, reasoning_content: __, ...rest } = message;
    const known = new Map(calls.map((call) => [call.id, [] as ChatMessage[]]));
    const others = results.filter((result) => known.get(result.tool_call_id)?.push(result) === undefined);
    for (const [index, call] of calls.entries()) {
      const begun = index === 0 ? message : { ...rest, content: null };
      apart.push({ ...begun, tool_calls: [call] }, ...known.get(call.id)!);
      known.set(call.id, []);
    }
    apart.push(...others);
  }
  return apart;
}
