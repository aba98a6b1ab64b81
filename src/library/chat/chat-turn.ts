import type { ChatMessage } from '../../../models/chat-message.js';
import type { FunctionTool } from '../../generation/tools/types.js';
import type { GenerateOptions } from '../answers.js';
import { CollectedAnswer, resultMessage } from '../collected-answer.js';
import type { AnsweringModel, PlannedAnswer } from './answering-model.js';
import type { ChatAnswer, ChatEvent, FinishedCall, PendingCall, WhenFull } from './chat-types.js';
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
 * without a call, or with one that waits for its result. After the last round of calls it may not call.
 * @param messages the conversation, the user's message or results of calls at its end @returns the conversation with all that was said
 * @throws as Skein.complete
 */
export async function* chatTurn(
  setting: TurnSetting,
  messages: readonly ChatMessage[],
  options: TurnOptions,
): AsyncGenerator<ChatEvent<never>, EndedTurn, undefined> {
  const { model, tools, whenFull, maxRounds } = setting;
  const described = Array.from(tools.values(), (tool) => tool.described);
  const isBegun = messages.at(-1)!.role === 'tool';
  const calls: FinishedCall[] = [];
  const warnings = new Set<string>();
  let generatedTokens = 0;
  let conversation = messages;
  for (let round = 0; ; round++) {
    const asked = { ...options, ...callOptions(described, options, round, { maxRounds, isBegun }) };
    const fitted = await fittedChat(model, conversation, asked, whenFull);
    const { planned, leftOut, summary } = fitted;
    if (leftOut > 0) yield { type: 'room', leftOut, summary };
    const said = yield* answerOf(model, planned);
    generatedTokens += said.generatedTokens;
    for (const warning of said.warnings) warnings.add(warning);
    conversation = [...fitted.messages, said.message];
    const pending: PendingCall[] = [];
    const limits = { ...setting, signal: options.signal };
    for await (const run of runCalls(said.calls, tools, limits)) {
      if ('pending' in run) {
        pending.push(run.pending);
        continue;
      }
      const { call, content } = run;
      calls.push(call);
      conversation = [...conversation, resultMessage(call.id, content)];
      yield { type: 'call', ...call };
    }
    for (const call of pending) yield { type: 'pending', ...call };
    if (said.calls.length === 0 || pending.length > 0) {
      const { text, reasoning, finishReason } = said;
      const answer = {
        text,
        ...(reasoning === '' ? {} : { reasoning }),
        calls,
        pending,
        finishReason: finishReason as ChatAnswer['finishReason'],
        rounds: round + 1,
        promptTokens: planned.request.promptTokens.length,
        generatedTokens,
        warnings: [...warnings],
      };
      return { messages: conversation, answer };
    }
  }
}

/** A choice that forces a call holds for the first round, or the turn would never end; and not where its results have come. */
function callOptions(
  tools: readonly FunctionTool[],
  { toolChoice }: Pick<GenerateOptions, 'toolChoice'>,
  round: number,
  { maxRounds, isBegun }: { maxRounds: number; isBegun: boolean },
): Pick<GenerateOptions, 'tools' | 'toolChoice'> {
  // With a list of tools, an empty one too, reasoning is separated from the answer.
  if (tools.length > 0 && round >= maxRounds) return { tools, toolChoice: 'none' };
  return { tools, toolChoice: (round === 0 && !isBegun) || toolChoice === 'none' ? toolChoice : 'auto' };
}

/** Asks once. */
async function* answerOf(
  model: AnsweringModel,
  planned: PlannedAnswer,
): AsyncGenerator<ChatEvent<never>, CollectedAnswer, undefined> {
  const said = new CollectedAnswer();
  for await (const piece of model.pieces(planned)) {
    said.add(piece);
    if (piece.reasoning !== undefined) yield { type: 'reasoning', text: piece.reasoning };
    if (piece.text !== '') yield { type: 'text', text: piece.text };
    for (const part of piece.toolCalls ?? []) yield { type: 'call-part', ...part };
  }
  return said;
}
