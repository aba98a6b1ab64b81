import { cutText, messageOf } from '../../../base/error-text.js';
import { onAbort } from '../../../base/on-abort.js';
import type { ChatMessage } from '../../../models/chat-message.js';
import { Slots } from '../../batch/slots.js';
import { CollectedCalls, type ToolCall } from '../../generation/chat-pieces.js';
import { objectOf } from '../../generation/tools/call-reader.js';
import type { FunctionTool } from '../../generation/tools/types.js';
import type { GenerateOptions } from '../answers.js';
import type { AnsweringModel, PlannedAnswer } from './answering-model.js';
import type { ChatAnswer, ChatEvent, FinishedCall, WhenFull } from './chat-types.js';
import { fittedChat } from './full-context.js';
import { noJson, type ReadyTool } from './ready-tools.js';

/** What a turn goes by. */
export interface TurnSetting {
  model: AnsweringModel;
  tools: ReadonlyMap<string, ReadyTool>;
  whenFull: WhenFull;
  maxRounds: number;
  maxParallelCalls: number;
  maxResultLength: number;
}

/** A turn's options for its requests, but for messages and tools. */
export type TurnOptions = GenerateOptions & { signal: AbortSignal };

/** A turn that has come to its end. */
export interface EndedTurn {
  messages: readonly ChatMessage[];
  answer: Omit<ChatAnswer, 'object'>;
}

/**
 * Has the model answer a conversation: it is asked, its calls are run, and it is asked again with what they gave, until it answers
 * without a call. After the last round of calls it may not call.
 * @param messages the conversation, the user's message at its end @returns the conversation with all that was said
 * @throws as Skein.complete
 */
export async function* chatTurn(
  setting: TurnSetting,
  messages: readonly ChatMessage[],
  options: TurnOptions,
): AsyncGenerator<ChatEvent<never>, EndedTurn, undefined> {
  const { model, tools, whenFull, maxRounds } = setting;
  const described = Array.from(tools.values(), (tool) => tool.described);
  const calls: FinishedCall[] = [];
  const warnings = new Set<string>();
  let generatedTokens = 0;
  let conversation = messages;
  for (let round = 0; ; round++) {
    const asked = { ...options, ...callOptions(described, options, round, maxRounds) };
    const fitted = await fittedChat(model, conversation, asked, whenFull);
    const { planned, leftOut, summary } = fitted;
    if (leftOut > 0) yield { type: 'room', leftOut, summary };
    const said = yield* answerOf(model, planned);
    generatedTokens += said.tokens;
    for (const warning of said.warnings) warnings.add(warning);
    conversation = [...fitted.messages, said.message];
    if (said.calls.length === 0) {
      const { text, reasoning, finishReason } = said;
      const answer = {
        text,
        ...(reasoning === '' ? {} : { reasoning }),
        calls,
        finishReason,
        rounds: round + 1,
        promptTokens: planned.request.promptTokens.length,
        generatedTokens,
        warnings: [...warnings],
      };
      return { messages: conversation, answer };
    }
    for await (const { call, content } of runCalls(said.calls, tools, {
      ...setting,
      signal: options.signal,
    })) {
      calls.push(call);
      conversation = [...conversation, { role: 'tool', tool_call_id: call.id, content }];
      yield { type: 'call', ...call };
    }
  }
}

/** A choice that forces a call holds for the first round, or the turn would never end. */
function callOptions(
  tools: readonly FunctionTool[],
  { toolChoice }: Pick<GenerateOptions, 'toolChoice'>,
  round: number,
  maxRounds: number,
): Pick<GenerateOptions, 'tools' | 'toolChoice'> {
  // With a list of tools, an empty one too, reasoning is told apart from the answer.
  if (tools.length > 0 && round >= maxRounds) return { tools, toolChoice: 'none' };
  return { tools, toolChoice: round === 0 || toolChoice === 'none' ? toolChoice : 'auto' };
}

interface SaidMessage {
  message: ChatMessage;
  text: string;
  reasoning: string;
  calls: readonly ToolCall[];
  tokens: number;
  warnings: readonly string[];
  finishReason: ChatAnswer['finishReason'];
}

/** Asks once. */
async function* answerOf(
  model: AnsweringModel,
  planned: PlannedAnswer,
): AsyncGenerator<ChatEvent<never>, SaidMessage, undefined> {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const collected = new CollectedCalls();
  const warnings: string[] = [];
  let tokens = 0;
  let finishReason: ChatAnswer['finishReason'] = 'stop';
  for await (const piece of model.pieces(planned)) {
    tokens += piece.tokens.length;
    warnings.push(...(piece.warnings ?? []));
    if (piece.reasoning !== undefined) {
      thoughts.push(piece.reasoning);
      yield { type: 'reasoning', text: piece.reasoning };
    }
    if (piece.text !== '') {
      texts.push(piece.text);
      yield { type: 'text', text: piece.text };
    }
    for (const part of piece.toolCalls ?? []) yield { type: 'call-part', ...part };
    collected.add(piece.toolCalls ?? []);
    if (piece.finishReason !== null) finishReason = piece.finishReason as ChatAnswer['finishReason'];
  }
  const [text, reasoning, calls] = [texts.join(''), thoughts.join(''), collected.list];
  const message: ChatMessage = { role: 'assistant', content: text };
  if (reasoning !== '') message.reasoning_content = reasoning;
  if (calls.length > 0)
    message.tool_calls = calls.map(({ id, ...callee }) => ({ id, type: 'function', function: callee }));
  return { message, text, reasoning, calls, tokens, warnings, finishReason };
}

/** A call that has been run, and what the model sees of it. */
interface RunCall {
  call: FinishedCall;
  content: string;
}

interface RunLimits {
  maxParallelCalls: number;
  maxResultLength: number;
  signal: AbortSignal;
}

/**
 * Runs the calls of one answer, several at once, and gives them in their order. What fails is told to the model.
 * @throws the reason of the signal
 */
export async function* runCalls(
  calls: readonly ToolCall[],
  tools: ReadonlyMap<string, ReadyTool>,
  { maxParallelCalls, maxResultLength, signal }: RunLimits,
): AsyncGenerator<RunCall, void, undefined> {
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
    const call = await run;
    yield { call, content: cutText(contentOf(call), maxResultLength) };
  }
}

async function finished(
  { id, name, arguments: text }: ToolCall,
  tools: ReadonlyMap<string, ReadyTool>,
  signal: AbortSignal,
): Promise<FinishedCall> {
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
function argumentsOf(text: string): Record<string, unknown> | null {
  // Models write nothing, or null, for a function without arguments.
  return /^\s*(?:null\s*)?$/.test(text) ? {} : objectOf(text);
}

function contentOf({ result, error }: FinishedCall): string {
  return error === null ? writtenResult(result) : JSON.stringify({ error });
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
