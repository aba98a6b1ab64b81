import { createParser } from 'eventsource-parser';
import { SkeinError } from '../../../../../base/skein-error.js';
import { problemOf } from '../problem.js';
import type { Session } from '../session.js';
import type { AnswerTiming } from './answer-timing.js';
import type { MessageContent } from './attachments/message-content.js';
import { partingOf } from './prompt-figures.js';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: MessageContent;
}

/** Body of POST /v1/chat/completions; the server's defaults hold for fields left out. */
export interface ChatRequest {
  model: string;
  messages: ChatMessage[];
  [parameter: string]: unknown;
}

/** A token of an answer, and those that were the most probable in its place. */
export interface TokenLogProb {
  token: string;
  logprob: number;
  top_logprobs: { token: string; logprob: number }[];
}

interface Chunk {
  choices?: {
    delta: { content?: string | null; reasoning_content?: string | null };
    logprobs?: { content?: TokenLogProb[] | null } | null;
    finish_reason: string | null;
    stop_reason?: string | number | null;
    seed?: number;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens: number };
  } | null;
  error?: { message?: string };
}

export interface ChatListener {
  onContent(text: string): void;
  onReasoning(text: string): void;
  onTokens(tokens: readonly TokenLogProb[]): void;
}

/** End of an answer. */
export interface ChatEnd {
  /** Why the answer ended; `aborted`: the reader stopped it. */
  finishReason: string;
  stopReason: string | number | null;
  /** Seed of the answer, given or drawn by the server. */
  seed: number | null;
  /** Tokens of the conversation with this answer, as the server counted them; null: it did not say. */
  contextTokens: number | null;
}

/** An error for an answer that did not come, or not to its end: one sentence. */
export class ChatProblem extends SkeinError {
  override name = 'ChatProblem';
  override readonly code = 'SKEIN_PAGE_CHAT';
}

/**
 * Asks for an answer and reads it as it is written.
 * @param signal stops the answer; the text so far stays.
 * @throws ChatProblem where the server refuses, fails, or is cut off before the end.
 */
export async function streamChat(
  session: Session,
  request: ChatRequest,
  listener: ChatListener,
  timing: AnswerTiming,
  signal: AbortSignal,
): Promise<ChatEnd> {
  const end: ChatEnd = { finishReason: '', stopReason: null, seed: null, contextTokens: null };
  try {
    const body = { ...request, stream: true, stream_options: { include_usage: true } };
    const response = await session.post('v1/chat/completions', body, { signal });
    if (!response.ok) throw new ChatProblem(await problemOf(response));
    const parting = partingOf(response.headers.get('x-skein-prompt-parted'));
    if (parting) timing.prompt.parting = parting;
    await readData(response, (data) => takeChunk(JSON.parse(data) as Chunk, end, listener, timing));
  } catch (error) {
    if (signal.aborted) return { ...end, finishReason: 'aborted' };
    throw problemWith(timing, error);
  }
  if (end.finishReason === '') {
    throw new ChatProblem('The stream ended before the answer was whole.');
  }
  return end;
}

/** What an error of a request means for the reader. */
export function problemWith(timing: AnswerTiming, error: unknown): ChatProblem {
  if (error instanceof ChatProblem) return error;
  const hasBegun = timing.tokens > 0;
  return new ChatProblem(
    hasBegun ? 'The connection was cut before the answer was whole.' : 'The server cannot be reached.',
  );
}

function takeChunk(chunk: Chunk, end: ChatEnd, listener: ChatListener, timing: AnswerTiming): void {
  if (chunk.error !== undefined) {
    throw new ChatProblem(chunk.error.message ?? 'The server failed while it answered.');
  }
  if (chunk.usage) {
    const { prompt_tokens: prompt, completion_tokens: answer } = chunk.usage;
    timing.noteTokens(answer);
    timing.prompt.tokens = prompt;
    timing.prompt.cached = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
    end.contextTokens = prompt + answer;
  }
  const choice = chunk.choices?.[0];
  if (choice === undefined) return;
  const { content, reasoning_content: reasoning } = choice.delta;
  if (content || reasoning) timing.notePiece(performance.now(), Boolean(reasoning));
  if (choice.logprobs?.content) listener.onTokens(choice.logprobs.content);
  if (reasoning) listener.onReasoning(reasoning);
  if (content) listener.onContent(content);
  if (choice.finish_reason === null) return;
  end.finishReason = choice.finish_reason;
  end.stopReason = choice.stop_reason ?? null;
  end.seed = choice.seed ?? null;
}

/** Reads the data of events until [DONE] or the end of the stream. */
export async function readData(response: Response, take: (data: string) => void): Promise<void> {
  let isDone = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === '[DONE]') isDone = true;
      else take(data);
    },
  });
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  while (!isDone) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
  }
}

/** Note about an answer that did not end by itself. */
export function endNote({ finishReason, stopReason }: ChatEnd): string {
  if (finishReason === 'aborted') return 'Stopped';
  if (stopReason === 'time_limit') return 'Cut off by the server\u2019s time limit';
  if (stopReason === 'cancelled') return 'Cancelled on the server';
  if (finishReason === 'length') return 'Cut off at the token limit';
  return '';
}
