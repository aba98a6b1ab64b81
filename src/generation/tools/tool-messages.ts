import type { ChatMessage } from '../../../models/chat-template.js';
import { HERMES_BEGIN, HERMES_END } from './hermes-parser.js';
import { parametersOf } from './tool-guide.js';
import type { FunctionTool } from './types.js';

/** A function in the form that templates know. */
export function templateTool(tool: FunctionTool): object {
  const { name, description } = tool;
  return {
    type: 'function',
    function: { name, description: description ?? '', parameters: parametersOf(tool) },
  };
}

/**
 * Messages in the form that templates of models with tools expect: without empty lists of calls, and with each result
 * naming its function.
 */
export function withResultNames(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<unknown, string>();
  return messages.map((message) => {
    for (const { id, name } of callsOf(message)) names.set(id, name);
    if (message.role === 'tool' && message.name === undefined && names.has(message.tool_call_id)) {
      return { ...message, name: names.get(message.tool_call_id)! };
    }
    if (message.tool_calls === undefined || message.tool_calls.length > 0) return message;
    const { tool_calls: _, ...rest } = message;
    return rest;
  });
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
  return [{ ...first, content: `${textOf(first)}\n\n${instructions(tools)}` }, ...rest];
}

function instructions(tools: readonly FunctionTool[]): string {
  const list = tools.map((tool) => JSON.stringify(templateTool(tool))).join('\n');
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
    return { role: 'user', content: `<tool_response>\n${textOf(message)}\n</tool_response>` };
  }
  const calls = callsOf(message);
  const { tool_calls: _, ...rest } = message;
  if (calls.length === 0) return rest;
  const written = calls.map(
    ({ name, args }) =>
      `${HERMES_BEGIN}\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n${HERMES_END}`,
  );
  const said = textOf(message);
  return { ...rest, content: [...(said === '' ? [] : [said]), ...written].join('\n') };
}

function isResponse(message: ChatMessage): boolean {
  return typeof message.content === 'string' && message.content.startsWith('<tool_response>');
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}

function callsOf(message: ChatMessage): { id: unknown; name: string; args: string }[] {
  return (message.tool_calls ?? []).flatMap((call) => {
    const { id, function: callee } = call as {
      id?: unknown;
      function?: { name?: unknown; arguments?: unknown };
    };
    if (typeof callee?.name !== 'string') return [];
    const args =
      typeof callee.arguments === 'string' ? callee.arguments : JSON.stringify(callee.arguments ?? {});
    return [{ id, name: callee.name, args: args.trim() === '' ? '{}' : args }];
  });
}
