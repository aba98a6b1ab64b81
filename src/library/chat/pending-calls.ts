import { messageOf } from '../../../base/error-text.js';
import { isObject, shown } from '../../../base/option-values.js';
import { counted } from '../../../base/sentences.js';
import type { ChatMessage } from '../../../models/chat-message.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { ToolCall } from '../../generation/chat-pieces.js';
import { resultMessage } from '../collected-answer.js';
import type { PendingCall } from './chat-types.js';
import type { ReadyTool } from './ready-tools.js';
import { argumentsOf, contentOf } from './run-calls.js';

/** Calls at the end of a conversation without results. Their arguments are as their functions' schemas make them, where they are accepted. */
export async function pendingCalls(
  messages: readonly ChatMessage[],
  tools: ReadonlyMap<string, ReadyTool>,
): Promise<PendingCall[]> {
  const { calls, results } = lastRound(messages);
  const answered = new Set(results.map(({ tool_call_id: id }) => id));
  const waiting = calls.filter(({ id }) => !answered.has(id));
  return Promise.all(
    waiting.map(async ({ id, name, arguments: text }) => {
      const args = argumentsOf(text);
      const validated = await tools.get(name)?.validate(args);
      return {
        id,
        name,
        arguments: validated !== undefined && 'value' in validated ? validated.value : (args ?? text),
      };
    }),
  );
}

/**
 * The conversation with the results of all calls that wait, in the order of the calls. @param most characters of a result that the model sees
 * @throws InvalidRequestError for a call without a result, a result without its call, and one that is no JSON
 */
export function withResults(
  messages: readonly ChatMessage[],
  pending: readonly PendingCall[],
  given: readonly unknown[],
  most: number,
): ChatMessage[] {
  if (pending.length === 0)
    throw new InvalidRequestError('No call of this chat waits for a result.', 'input');
  const contents = new Map(given.map((one, index) => contentAt(one, `results[${index}]`, pending, most)));
  const lacking = pending.filter(({ id }) => !contents.has(id));
  if (lacking.length > 0)
    throw new InvalidRequestError(`results lack ${idsOf(lacking)}, which waits for one too.`, 'results');
  if (contents.size < given.length)
    throw new InvalidRequestError('results have two for one call; each call gets one.', 'results');
  const { calls, results } = lastRound(messages);
  const made = [...contents].map(([id, content]) => resultMessage(id, content));
  const place = new Map(calls.map(({ id }, index) => [id, index] as const));
  const placeOf = ({ tool_call_id: id }: ChatMessage) => place.get(id as string) ?? 0;
  const all = [...results, ...made].sort((one, other) => placeOf(one) - placeOf(other));
  return [...messages.slice(0, messages.length - results.length), ...all];
}

/** The message for a turn that brings no results while calls wait. */
export const waitingText = (pending: readonly PendingCall[]) =>
  `${counted(pending.length, 'call')} of this chat wait for results (${idsOf(pending)}); send { results } first.`;

const idsOf = (calls: readonly PendingCall[]) => calls.map(({ id, name }) => `${name} ${id}`).join(', ');

function contentAt(
  given: unknown,
  place: string,
  pending: readonly PendingCall[],
  most: number,
): [id: string, content: string] {
  const refuse = (what: string): never => {
    throw new InvalidRequestError(`${place} ${what}`, place);
  };
  if (!isObject(given)) return refuse(`is ${shown(given)}; it must be { id, result } or { id, error }.`);
  const { id, result, error, ...others } = given;
  const [other] = Object.keys(others);
  if (other !== undefined) refuse(`has ${shown(other)}; it must be { id, result } or { id, error }.`);
  if ('result' in given === 'error' in given) refuse('must have either result or error.');
  if (!pending.some((call) => call.id === id))
    refuse(`is for the call ${shown(id)}, and those that wait are ${idsOf(pending)}.`);
  if ('error' in given && typeof error !== 'string') refuse(`has error ${shown(error)}; it must be a text.`);
  try {
    return [id as string, contentOf({ result, error: (error as string | undefined) ?? null }, most)];
  } catch (problem) {
    return refuse(`has a result that cannot be written as JSON: ${messageOf(problem)}`);
  }
}

/** The calls of the last answer, and the results that follow it. */
function lastRound(messages: readonly ChatMessage[]): {
  calls: readonly ToolCall[];
  results: readonly ChatMessage[];
} {
  const at = messages.findLastIndex(({ role }) => role !== 'tool');
  const calls = (messages[at]?.tool_calls ?? []) as { id: string; function: Omit<ToolCall, 'id'> }[];
  return {
    calls: calls.map(({ id, function: callee }) => ({ id, ...callee })),
    results: messages.slice(at + 1),
  };
}
