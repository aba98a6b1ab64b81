import type { ChatMessage } from '../../../models/chat-template.js';
import { contentBetween, messageText } from '../messages.js';
import { parametersOf } from './followed-schema.js';
import { HERMES_BEGIN, HERMES_END } from './hermes-parser.js';
import type { FunctionTool } from './types.js';

/** A call of a function in an assistant's message, in the form that templates know. */
export interface MadeCall {
  id?: unknown;
  function: { name: string; arguments?: unknown };
}

/** Calls of a message; entries that are no calls are left out. */
export function callsOf({ tool_calls: calls }: ChatMessage): readonly MadeCall[] {
  return ((calls ?? []) as readonly Partial<MadeCall>[]).filter(
    (call): call is MadeCall => typeof call?.function?.name === 'string',
  );
}

/** A function in the form that templates know, with the fields that it was given with. */
export function templateTool({ name, description, parameters, strict }: FunctionTool): object {
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
      ...(strict !== undefined && { strict }),
    },
  };
}

/**
 * Messages in the form that templates of models with tools expect: without empty lists of calls, with arguments for each
 * call, and with each result naming its function.
 */
export function nativeMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const names = new Map<unknown, string>();
  return messages.map((message) => {
    const calls = callsOf(message);
    for (const { id, function: callee } of calls) names.set(id, callee.name);
    if (message.role === 'tool' && message.name === undefined && names.has(message.tool_call_id)) {
      return { ...message, name: names.get(message.tool_call_id)! };
    }
    if (message.tool_calls === undefined) return message;
    const { tool_calls: _, ...rest } = message;
    return calls.length === 0 ? rest : { ...rest, tool_calls: calls.map(withArguments) };
  });
}

/** A call without arguments gets an empty object: templates look into it. */
function withArguments(call: MadeCall): MadeCall {
  const { arguments: args } = call.function;
  const hasNone = args == null || (typeof args === 'string' && /^\s*(?:null\s*)?$/.test(args));
  return hasNone ? { ...call, function: { ...call.function, arguments: '{}' } } : call;
}

/**
 * The conversation for a template that knows no tools: the system message describes the functions, calls are the
 * assistant's text, and results come from the user.
 */
export function plainMessages(
  messages: readonly ChatMessage[],
  tools: readonly FunctionTool[],
): ChatMessage[] {
  const plain = messages.map(plainMessage);
  // Neighbours of one role become one message, since many templates want user and assistant to take turns.
  const joined: ChatMessage[] = [];
  for (const message of plain) {
    const last = joined.at(-1);
    const isResult = message.role === 'user' && last?.role === 'user' && isResponse(message);
    if (isResult && isResponse(last)) last.content = `${last.content}\n${message.content}`;
    else joined.push({ ...message });
  }
  if (tools.length === 0) return joined;
  const [first, ...rest] = joined;
  if (first?.role !== 'system') return [{ role: 'system', content: instructions(tools) }, ...joined];
  return [{ ...first, content: `${messageText(first)}\n\n${instructions(tools)}` }, ...rest];
}

/** A function as the system message describes it. */
function writtenTool(tool: FunctionTool): object {
  const { name, description = '' } = tool;
  return { type: 'function', function: { name, description, parameters: parametersOf(tool) } };
}

function instructions(tools: readonly FunctionTool[]): string {
  const list = tools.map((tool) => JSON.stringify(writtenTool(tool))).join('\n');
  return [
    'You may call functions to help with what the user asks for. These are the functions, as JSON:',
    `<tools>\n${list}\n</tools>`,
    'To call one, answer with a JSON object of its name and its arguments within tags, once for each call:',
    `${HERMES_BEGIN}\n{"name": "the function's name", "arguments": {"an argument": "its value"}}\n${HERMES_END}`,
    'What the function returns comes back within <tool_response> tags.',
  ].join('\n');
}

function plainMessage(message: ChatMessage): ChatMessage {
  if (message.role === 'tool') {
    return { role: 'user', content: contentBetween('<tool_response>\n', message, '\n</tool_response>') };
  }
  const calls = callsOf(message).map(withArguments);
  const { tool_calls: _, ...rest } = message;
  if (calls.length === 0) return rest;
  const written = calls.map(({ function: { name, arguments: args } }) => {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    return `${HERMES_BEGIN}\n{"name": ${JSON.stringify(name)}, "arguments": ${text}}\n${HERMES_END}`;
  });
  const said = messageText(message);
  return { ...rest, content: [...(said === '' ? [] : [said]), ...written].join('\n') };
}

function isResponse(message: ChatMessage): boolean {
  return typeof message.content === 'string' && message.content.startsWith('<tool_response>');
}
