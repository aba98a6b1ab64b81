import { cutText, messageOf } from '../../../base/error-text.js';
import { onAbort } from '../../../base/on-abort.js';
import { Slots } from '../../batch/slots.js';
import type { ToolCall } from '../../generation/chat-pieces.js';
import { objectOf } from '../../generation/tools/call-reader.js';
import type { FinishedCall, PendingCall } from './chat-types.js';
import { noJson, type ReadyTool } from './ready-tools.js';

/** A call that has been run, and what the model sees of it. */
export interface RunCall {
  call: FinishedCall;
  content: string;
}

export interface RunLimits {
  maxParallelCalls: number;
  maxResultLength: number;
  signal: AbortSignal;
}

/** A call that the program answers. */
export interface WaitingCall {
  pending: PendingCall;
}

/**
 * Runs the calls of one answer, several at once, and gives them in their order. A failure is reported to the
 * model. A call of a function that is not run here waits, once its arguments are what they should be.
 * @throws the reason of the signal
 */
export async function* runCalls(
  calls: readonly ToolCall[],
  tools: ReadonlyMap<string, ReadyTool>,
  { maxParallelCalls, maxResultLength, signal }: RunLimits,
): AsyncGenerator<RunCall | WaitingCall, void, undefined> {
  const slots = new Slots(maxParallelCalls);
  const runs = calls.map(async (call) => {
    const free = await slots.take(signal);
    try {
      return await untilAbort(finished(call, tools, signal), signal);
    } finally {
      free();
    }
  });
  // All of them fail when the signal is aborted, and only the first is awaited then.
  for (const run of runs) run.catch(() => {});
  for (const run of runs) {
    const done = await run;
    yield 'pending' in done ? done : { call: done, content: contentOf(done, maxResultLength) };
  }
}

async function finished(
  { id, name, arguments: text }: ToolCall,
  tools: ReadonlyMap<string, ReadyTool>,
  signal: AbortSignal,
): Promise<FinishedCall | WaitingCall> {
  const failed = (error: string, args: unknown = text) => ({
    id,
    name,
    arguments: args,
    result: undefined,
    error,
  });
  const tool = tools.get(name);
  if (tool === undefined) {
    const names = [...tools.keys()].join(', ');
    return failed(`There is no function ${JSON.stringify(name)}; the functions are ${names}.`);
  }
  const given = argumentsOf(text);
  if (given === null) return failed(noJson(text));
  try {
    const validated = await tool.validate(given);
    if ('faults' in validated)
      return failed(`The arguments are wrong: ${validated.faults.join('; ')}.`, given);
    const args = validated.value;
    if (tool.execute === undefined) return { pending: { id, name, arguments: args } };
    signal.throwIfAborted();
    const result = await tool.execute(args as never, { id, signal });
    // What cannot be written as JSON is an error of the function.
    writtenResult(result);
    return { id, name, arguments: args, result, error: null };
  } catch (error) {
    return failed(messageOf(error), given);
  }
}

/** The arguments of a call; null where they are no JSON object. */
export function argumentsOf(text: string): Record<string, unknown> | null {
  // Models write nothing, or null, for a function without arguments.
  return /^\s*(?:null\s*)?$/.test(text) ? {} : objectOf(text);
}

/** What the model sees of a call. @throws TypeError for a result that cannot be written as JSON */
export function contentOf({ result, error }: Pick<FinishedCall, 'result' | 'error'>, most: number): string {
  return cutText(error === null ? writtenResult(result) : JSON.stringify({ error }), most);
}

function writtenResult(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null');
}

/** The promise's value, or the signal's reason as soon as it is aborted: a function need not look at its signal. */
function untilAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(stop);
  });
}
