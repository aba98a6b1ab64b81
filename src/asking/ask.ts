import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { ChatMessage } from '../../models/chat-message.js';
import { CollectedCalls, type ToolCall, type ToolCallPart } from '../generation/chat-pieces.js';
import type { FunctionTool } from '../generation/tools/types.js';
import { type Asker, AskingError } from './asker.js';
import { errorOf, refusalOf } from './refusal.js';
import type { SamplingSettings } from './sampling-settings.js';

/** A conversation to answer, or a text to continue. */
export type Question =
  | { messages: readonly ChatMessage[]; tools?: AskedTools | undefined }
  | { prompt: string };

/** Functions that the model may call. */
export interface AskedTools {
  functions: readonly FunctionTool[];
  /** false: they are described, since the conversation has calls of them, and not called again. */
  mayCall: boolean;
}

export interface AskOptions {
  settings: SamplingSettings;
  /** Signal whose abort ends the answer, which is then the text so far. */
  signal: AbortSignal;
  /** Called with each piece of text as it comes. */
  onText?: (text: string, kind: 'answer' | 'reasoning') => void;
}

export interface Answer {
  text: string;
  /** The model's reasoning; '' where it has none. */
  reasoning: string;
  /** Functions that the model calls. */
  calls: readonly ToolCall[];
  /** Finish reason in the API's words, or 'cancelled' where the signal ended the answer. */
  finishReason: string;
  /** Seed of the answer; null where the server does not report it. */
  seed: number | null;
  /** Counts of tokens; null where the answer was cancelled, or the server does not count. */
  usage: { promptTokens: number; cachedTokens: number; completionTokens: number } | null;
  /** Milliseconds to the first token; null where none came. */
  firstTokenMs: number | null;
  totalMs: number;
}

/**
 * Most tokens of an answer where no limit is given and the room in the context is not known: /v1/completions would end
 * after 16.
 */
const DEFAULT_MAX_TOKENS = 1024;

interface CallDelta {
  index?: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface Chunk {
  choices?: {
    text?: string;
    delta?: {
      content?: string | null;
      reasoning?: string;
      reasoning_content?: string;
      tool_calls?: CallDelta[];
    };
    finish_reason?: string | null;
    seed?: number;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
}

/** Sends a question and passes the answer on as it comes. @throws AskingError where it is refused or breaks off. */
export async function ask(asker: Asker, question: Question, options: AskOptions): Promise<Answer> {
  const start = performance.now();
  const calls = new CollectedCalls();
  const answer: Answer = {
    text: '',
    reasoning: '',
    calls: calls.list,
    finishReason: 'cancelled',
    seed: null,
    usage: null,
    firstTokenMs: null,
    totalMs: 0,
  };
  const take = (chunk: Chunk) => {
    if (chunk.usage) answer.usage = usageOf(chunk.usage);
    const choice = chunk.choices?.[0];
    if (choice === undefined) return;
    const { delta } = choice;
    const reasoning = delta?.reasoning_content ?? delta?.reasoning ?? '';
    const text = choice.text ?? delta?.content ?? '';
    const parts = delta?.tool_calls ?? [];
    calls.add(parts.map(callPart));
    if (reasoning !== '' || text !== '' || parts.length > 0)
      answer.firstTokenMs ??= performance.now() - start;
    answer.reasoning += reasoning;
    answer.text += text;
    if (reasoning !== '') options.onText?.(reasoning, 'reasoning');
    if (text !== '') options.onText?.(text, 'answer');
    if (choice.finish_reason) answer.finishReason = choice.finish_reason;
    answer.seed = choice.seed ?? answer.seed;
  };
  try {
    await stream(asker, question, options, take);
    if (answer.finishReason === 'cancelled') throw new AskingError('The answer broke off before its end.');
  } catch (error) {
    if (!options.signal.aborted) throw brokenOff(error);
    answer.finishReason = 'cancelled';
  }
  answer.totalMs = performance.now() - start;
  return answer;
}

/** Parts of a call after its first one have neither id nor name. */
function callPart({ index, id = '', function: callee }: CallDelta, place: number): ToolCallPart {
  return { index: index ?? place, id, name: callee?.name ?? '', arguments: callee?.arguments ?? '' };
}

async function stream(
  asker: Asker,
  question: Question,
  { settings, signal }: AskOptions,
  take: (chunk: Chunk) => void,
): Promise<void> {
  const isChat = 'messages' in question;
  const path = isChat ? '/v1/chat/completions' : '/v1/completions';
  const body = {
    model: asker.model,
    ...(isChat ? chatFields(question) : question),
    ...(isChat ? {} : { max_tokens: settings.max_tokens ?? (await roomFor(asker, question.prompt, signal)) }),
    ...settings,
    stream: true,
    stream_options: { include_usage: true },
  };
  const response = await asker.post(path, body, signal);
  if (!response.ok || response.body === null) throw await refusalOf(response, null);
  const events = response.body
    // Node's types give its decoder a wider input than bytes.
    .pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>, { signal })
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    signal.throwIfAborted();
    if (data === '[DONE]') return;
    const error = errorOf(data);
    if (error !== null) throw error;
    take(JSON.parse(data) as Chunk);
  }
}

function chatFields({ messages, tools }: Extract<Question, { messages: unknown }>): object {
  if (tools === undefined || tools.functions.length === 0) return { messages };
  const described = tools.functions.map((one) => ({ type: 'function', function: one }));
  return { messages, tools: described, ...(tools.mayCall ? {} : { tool_choice: 'none' }) };
}

/** Number of tokens that the context leaves after a text to continue. */
async function roomFor(asker: Asker, prompt: string, signal: AbortSignal): Promise<number> {
  const used = await countTokens(asker, { prompt }, signal);
  if (used === null || asker.maxSeqLen === null) return DEFAULT_MAX_TOKENS;
  return Math.max(1, Math.min(DEFAULT_MAX_TOKENS, asker.maxSeqLen - used));
}

/** Number of tokens of a question; null where the server does not count, as some do not. */
export async function countTokens(
  asker: Asker,
  question: Question,
  signal: AbortSignal,
): Promise<number | null> {
  const asked = 'messages' in question ? chatFields(question) : question;
  const response = await asker.post('/tokenize', { model: asker.model, ...asked }, signal);
  if (!response.ok) {
    await response.body?.cancel();
    return null;
  }
  const { count } = (await response.json().catch(() => ({}))) as { count?: unknown };
  return typeof count === 'number' ? count : null;
}

function usageOf(usage: NonNullable<Chunk['usage']>): NonNullable<Answer['usage']> {
  return {
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    completionTokens: usage.completion_tokens,
  };
}

/** Replaces the network's error for an ended connection by a sentence. */
function brokenOff(error: unknown): unknown {
  if (error instanceof TypeError || error instanceof SyntaxError) {
    return new AskingError('The answer broke off: the connection to the server was lost.');
  }
  return error;
}
