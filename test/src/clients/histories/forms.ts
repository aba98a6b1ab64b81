import { createHash } from 'node:crypto';
import { parseWritten } from '../../../../base/written-json.js';
import type { ChatMessage } from '../../../../models/chat-template.js';
import { plainMessages } from '../../../../src/generation/tools/tool-messages.js';
import type { FunctionTool } from '../../../../src/generation/tools/types.js';

/** A conversation as a template may want it; what docs/architecture/chats.md says of it, written once more for the judge. */
export interface Form {
  /** Orders of roles, forms of calls. */
  name: string;
  messages: readonly ChatMessage[];
  /** undefined: a text describes them. */
  tools: readonly object[] | undefined;
}

/** A conversation in transformers' words. */
export interface Conversation {
  messages: readonly ChatMessage[];
  tools: readonly { type: 'function'; function: FunctionTool }[];
}

interface Call {
  id: string;
  function: { name: string; arguments: string };
}

const callsOf = (message: ChatMessage) => (message.tool_calls ?? []) as readonly Call[];
const isSystem = ({ role }: ChatMessage) => role === 'system';

/** The forms of a conversation, the nearest first. @param knowsTools true where the template has a place for functions */
export function* formsOf({ messages, tools }: Conversation, knowsTools: boolean): Generator<Form> {
  const hasCalls = messages.some((message) => callsOf(message).length > 0);
  for (const [order, ordered] of knowsTools || (tools.length === 0 && !hasCalls) ? orders(messages) : []) {
    const told = tools.length === 0 ? undefined : tools;
    yield { name: order, messages: ordered, tools: told };
    if (!hasCalls) continue;
    yield { name: `${order}, short ids`, messages: withShortIds(ordered), tools: told };
    yield { name: `${order}, single calls`, messages: withSingleCalls(withShortIds(ordered)), tools: told };
  }
  if (tools.length === 0 && !hasCalls) return;
  const plain = plainMessages(
    messages,
    tools.map((tool) => tool.function),
  );
  for (const [order, ordered] of orders(plain))
    yield { name: `${order}, as text`, messages: ordered, tools: undefined };
}

type Order = [name: string, messages: readonly ChatMessage[]];

function orders(messages: readonly ChatMessage[]): Order[] {
  const system = messages.filter(isSystem);
  const others = messages.filter((message) => !isSystem(message));
  const first = system.length === 0 ? messages : [joined(system), ...others];
  const at = others.findIndex(({ role }) => role === 'user');
  const user = system.length === 0 ? messages : others.with(at, joined([...system, others[at]!], 'user'));
  return [
    ['as given', messages],
    ['system first', first],
    ['system first, turns', inTurns(first)],
    ['system as user', user],
    ['system as user, turns', inTurns(user)],
  ];
}

/** The only form of which the template of gpt-oss leaves nothing out. */
export function harmonyForm(messages: readonly ChatMessage[]): ChatMessage[] {
  const [, [, first]] = orders(messages) as [Order, Order];
  return withSingleCalls(first).map((message) => {
    const { reasoning_content: reasoning = '', ...rest } = message as ChatMessage & {
      reasoning_content?: string;
    };
    if (callsOf(message).length === 0) return reasoning === '' ? rest : { ...rest, thinking: reasoning };
    const thinking = [reasoning, textOf(message)].filter((text) => text !== '').join('\n\n');
    return { ...rest, content: '', ...(thinking !== '' && { thinking }) };
  });
}

/** How a template of Gemma 4 reads messages with calls. */
export type Gemma4Reading = 'text first' | 'text last' | 'as given' | 'responses';

/** The only form of which a template of Gemma 4 leaves nothing out, and after which a turn of the model is open. */
export function gemma4Form(messages: readonly ChatMessage[], reading: Gemma4Reading): ChatMessage[] {
  const names = new Map(messages.flatMap(callsOf).map((call) => [call.id, call.function.name]));
  const form: ChatMessage[] = [];
  for (const [index, message] of messages.entries()) {
    const before = messages.slice(0, index).findLast(({ role }) => role !== 'tool');
    const isResult = message.role === 'tool' && before !== undefined && callsOf(before).length > 0;
    if (isResult && reading === 'responses') continue;
    if (isResult) form.push({ ...message, name: message.name ?? names.get(message.tool_call_id as string) });
    else if (message.role === 'tool') form.push({ role: 'user', content: textOf(message) });
    else if (isSystem(message)) form.push({ ...message, content: textOf(message) });
    else if (callsOf(message).length === 0) {
      const last = form.at(-1);
      const isAnswer =
        reading === 'responses' && last?.tool_responses !== undefined && message.role === 'assistant';
      if (isAnswer && textOf(message) !== '') last.content = message.content!;
      else form.push(message);
    } else {
      const end = messages.findIndex(({ role }, i) => i > index && role !== 'tool');
      const results = messages.slice(index + 1, end < 0 ? messages.length : end);
      const isFirst = reading === 'text first' || reading === 'responses';
      const isApart =
        textOf(message).trim() !== '' && (isFirst || (reading === 'text last' && results.length > 0));
      const { reasoning_content: reasoning, ...unreasoned } = message;
      const isMoved = isApart && reading === 'text first' && reasoning !== undefined;
      const moved = isMoved ? { reasoning_content: reasoning } : {};
      const text: ChatMessage[] = isApart ? [{ role: 'assistant', content: message.content!, ...moved }] : [];
      const responses = results.map((result) => ({
        name: result.name ?? names.get(result.tool_call_id as string),
        response: textOf(result),
      }));
      const calls = {
        ...(isMoved ? unreasoned : message),
        ...(isApart && { content: null }),
        ...(reading === 'responses' && results.length > 0 && { tool_responses: responses }),
      };
      if (isFirst) form.push(...text, calls);
      else form.push(calls, ...(isApart ? [{ role: 'text', content: text[0]!.content! }] : []));
    }
  }
  // Text that comes last stands after the results.
  return form.flatMap((message, i) => {
    if (message.role === 'text') return [];
    const isEnd = message.role === 'tool' && form[i + 1]?.role !== 'tool';
    const held = form.slice(0, i).findLast(({ role }) => role !== 'tool');
    if (!isEnd || held?.role !== 'text') return [message];
    return [message, { role: 'assistant', content: held.content! }];
  });
}

function inTurns(messages: readonly ChatMessage[]): ChatMessage[] {
  const turns: ChatMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === message.role && message.role !== 'tool')
      turns[turns.length - 1] = { ...message, ...joined([last, message]) };
    else turns.push(message);
  }
  return turns;
}

function joined(messages: readonly ChatMessage[], role = messages[0]!.role): ChatMessage {
  if (messages.length === 1) return messages[0]!;
  const texts = messages.map(textOf).filter((text) => text !== '');
  return { ...messages[0]!, role, content: texts.join('\n\n') };
}

export const textOf = ({ content }: ChatMessage): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text).join('\n');

/** Ids that Mistral's templates take: hashes in place of others. */
function withShortIds(messages: readonly ChatMessage[]): ChatMessage[] {
  const short = (id: string) =>
    /^\w{9}$/.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9);
  return messages.map((message) => {
    if (message.role === 'tool') return { ...message, tool_call_id: short(message.tool_call_id as string) };
    const calls = callsOf(message);
    if (calls.length === 0) return message;
    return { ...message, tool_calls: calls.map((call) => ({ ...call, id: short(call.id) })) };
  });
}

/** One call in a message, each with its result. */
function withSingleCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.flatMap((message, index) => {
    const calls = callsOf(message);
    if (calls.length === 0) return message.role === 'tool' ? [] : [message];
    const results = messages.slice(index + 1);
    const { reasoning_content: _, ...rest } = message;
    return calls.flatMap((call, i) => [
      i === 0 ? { ...message, tool_calls: [call] } : { ...rest, content: null, tool_calls: [call] },
      ...results.filter(({ tool_call_id: id }) => id === call.id),
    ]);
  });
}

/** Messages as transformers' users give them: arguments as objects, and texts where the template reads no parts. */
export function asValues(messages: readonly ChatMessage[], readsParts: boolean): ChatMessage[] {
  return messages.map((message) => {
    const calls = callsOf(message).map(({ function: { arguments: args, ...callee }, ...call }) => ({
      ...call,
      function: { ...callee, arguments: parseWritten(args) },
    }));
    const content = readsParts ? (message.content ?? '') : textOf(message);
    return { ...message, content, ...(calls.length > 0 && { tool_calls: calls }) };
  });
}
