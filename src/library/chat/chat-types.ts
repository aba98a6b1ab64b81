import type { FinishReason } from '../../../callbacks/token-request.js';
import type { ChatMessage, ChatTextPart } from '../../../models/chat-message.js';
import type { ToolCallPart } from '../../generation/chat-pieces.js';
import type { OutputOf, StandardSchema } from '../../generation/standard-schema.js';
import type { GenerateOptions } from '../answers.js';
import type { ChatTool } from './chat-tool.js';

/** Options of one answer that a chat has no place for: it makes the prompt itself, and returns no logits. */
export const OF_OTHER_CALLS = [
  ...(['prompt', 'messages', 'infill', 'promptTokens', 'promptEmbeddings', 'positionIds', 'tools'] as const),
  ...(['addGenerationPrompt', 'continueFinalMessage', 'signal'] as const),
  ...(['logProbs', 'returnGenerationLogits', 'returnContextLogits', 'contextLogProbs'] as const),
] as const;

/** Settings of the answers in a chat; those of a turn go before those of the chat. */
export type ChatSettings = Omit<GenerateOptions, (typeof OF_OTHER_CALLS)[number]>;

/**
 * What becomes of a conversation that leaves no room for an answer:
 *
 *   drop        its oldest turns are dropped
 *   summarise   the model writes a summary that stands for its oldest turns
 *   refuse      the turn is refused with a ContextLengthError
 */
export type WhenFull = 'drop' | 'summarise' | 'refuse';

/** Options of a chat. */
export interface ChatSessionOptions extends ChatSettings {
  /** Text of the system's message. It takes the place of one in `messages` or `saved`. */
  system?: string | undefined;
  /** What was said before, as OpenAI's chat has it. */
  messages?: readonly ChatMessage[] | undefined;
  /** What `save()` of a chat returned, in place of `messages`. */
  saved?: unknown;
  /** Functions that the model may call, by their names. The chat runs them. */
  tools?: Readonly<Record<string, ChatTool>> | undefined;
  /** What becomes of a conversation that is too long for the context. Default 'drop'. */
  whenFull?: WhenFull | undefined;
  /** Most rounds of calls in a turn: after them the model has to answer without calls. Default 8. */
  maxRounds?: number | undefined;
  /** Most functions that run at once. Default 8. */
  maxParallelCalls?: number | undefined;
  /** Most characters (UTF-16 units) of what a function returned that the model sees; the rest is cut off. Default 65536. */
  maxResultLength?: number | undefined;
}

/** Options of one turn. */
export interface SendOptions extends ChatSettings {
  /** Schema of an object that the answer is: zod's or another Standard Schema, which gives its type too, or a JSON schema. */
  object?: StandardSchema | object | undefined;
  /** Signal whose abort ends the turn, the functions that run included. */
  signal?: AbortSignal | undefined;
}

/** Type of an answer's object, by the options of its turn. */
export type ObjectOf<Options> = Options extends { object: infer Schema }
  ? Schema extends StandardSchema
    ? OutputOf<Schema>
    : unknown
  : undefined;

/** What the program got for a call that it answers itself, or why it got nothing. */
export type CallResult = { id: string; result: unknown } | { id: string; error: string };

/** What a user says: a text, or parts that are texts and pictures. Or the results of all calls that wait for them. */
export type ChatInput = string | readonly ChatTextPart[] | { results: readonly CallResult[] };

/** A call of a function without `execute`, which waits for its result. */
export interface PendingCall {
  id: string;
  name: string;
  /** Arguments that the function's schema accepts. */
  arguments: unknown;
}

/** A call that has been run, or could not be. */
export interface FinishedCall {
  id: string;
  name: string;
  /** What the function was given; the text that the model wrote where that is no JSON. */
  arguments: unknown;
  /** What the function returned; undefined where it failed. */
  result: unknown;
  /** Why there is no result, in the words that the model sees; null: there is one. */
  error: string | null;
}

/** The answer to one turn. */
export interface ChatAnswer<Result = undefined> {
  /** What the model said last, after all calls. */
  text: string;
  /** Reasoning before that; absent: there is none. */
  reasoning?: string;
  /** The object that was asked for. */
  object: Result;
  /** All calls of the turn that were run, in order. */
  calls: readonly FinishedCall[];
  /** Calls that wait for their results, which the next turn has to bring; empty: the model has answered. */
  pending: readonly PendingCall[];
  finishReason: Exclude<FinishReason, 'cancelled'>;
  /** Number of times that the model was asked, without summaries. */
  rounds: number;
  /** Tokens of the last prompt, which has the whole conversation. */
  promptTokens: number;
  /** Tokens that the model wrote in all rounds. */
  generatedTokens: number;
  /** What was changed about the functions for the chat template, and what of a schema is not followed: a sentence each. */
  warnings: readonly string[];
}

/** What happens in a turn, as it happens. */
export type ChatEvent<Result = undefined> =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A part of a call, as the model writes it. */
  | ({ type: 'call-part' } & ToolCallPart)
  /** A call that has been run. Calls of one round come in their order. */
  | ({ type: 'call' } & FinishedCall)
  /** A call that waits for its result, after the calls that were run. */
  | ({ type: 'pending' } & PendingCall)
  /** Messages have left the conversation to make room; `summary` replaces them; null: nothing does. */
  | { type: 'room'; leftOut: number; summary: string | null }
  /** The last event. */
  | { type: 'answer'; answer: ChatAnswer<Result> };
