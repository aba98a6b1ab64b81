import type { ChatMessage } from '../../../models/chat-message.js';
import { CollectedCalls, type ToolCall } from '../../generation/chat-pieces.js';
import type { FunctionTool } from '../../generation/tools/types.js';
import type { GenerateOptions } from '../answers.js';
import type { AnsweringModel, PlannedAnswer } from './answering-model.js';
import type { ChatAnswer, ChatEvent, FinishedCall, WhenFull } from './chat-types.js';
import { fittedChat } from './full-context.js';
import type { ReadyTool } from './ready-tools.js';
import { runCalls } from './run-calls.js';

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
