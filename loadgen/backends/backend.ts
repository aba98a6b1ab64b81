import type { Message, Turn } from '../samples.js';

/** What a backend tells of an answer while it reads it. */
export interface AnswerSink {
  /** A piece of the answer with text. */
  text(text: string): void;
  /** The server's counts; undefined where it does not say. */
  usage(promptTokens?: number, completionTokens?: number, cachedTokens?: number): void;
  /** The answer has its end. */
  finish(): void;
  /** An end will be told: the connection's alone is none, whatever the backend says of its API. */
  goOn(): void;
  /** The server reports an error inside the answer. */
  fail(message: string): void;
}

export interface BackendOptions {
  name: BackendName;
  model: string;
  /** Path, over the backend's own. */
  path?: string;
  /** Ask for an event stream. */
  stream: boolean;
  /** Ask that the answer goes on behind the model's end token. */
  ignoreEos: boolean;
  /** Fields of every body. */
  fields: Readonly<Record<string, unknown>>;
}

export const BACKEND_NAMES = ['chat', 'completions', 'responses', 'kserve', 'raw'] as const;
export type BackendName = (typeof BACKEND_NAMES)[number];

/** One API: how a request of it is written and how its answers are read. Stateless. */
export interface Backend {
  readonly path: string;
  /** `earlier` are the messages of the conversation so far. */
  body(turn: Turn, earlier: readonly Message[]): string;
  /** @throws Error for data that is not of this API. */
  readEvent(data: string, sink: AnswerSink): void;
  /** A body that is not an event stream. @throws Error for one that is not of this API. */
  readWhole(text: string, sink: AnswerSink): void;
  /** An answer that ends without an end mark is whole: its API has none. */
  readonly endsWithConnection: boolean;
}

/** A prompt with its earlier messages as one text, for APIs that know no messages. */
export function asText(turn: Turn, earlier: readonly Message[]): string {
  return [...earlier, ...(turn.history ?? [])].map(({ content }) => `${content}\n`).join('') + turn.prompt;
}

export function asMessages(turn: Turn, earlier: readonly Message[]): Message[] {
  return [...earlier, ...(turn.history ?? []), { role: 'user', content: turn.prompt }];
}

/** @throws Error where it is no object. */
export function parseObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error('It is no object.');
  return value as Record<string, unknown>;
}

/** The object of an answer, or of an event of it; null where it tells an error, which the sink has been told. @throws as above. */
export function answerOf(text: string, sink: AnswerSink): Record<string, unknown> | null {
  const answer = parseObject(text);
  const error = errorOf(answer);
  if (error === null) return answer;
  sink.fail(error);
  return null;
}

/** Fields of every body of chat and completions, with counts at the end of a stream. */
export function fieldsWithUsage({
  model,
  stream,
  ignoreEos,
  fields,
}: BackendOptions): Record<string, unknown> {
  return {
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(ignoreEos ? { ignore_eos: true } : {}),
    ...fields,
  };
}

/** The words of an error object of an answer; null where there is none. */
export function errorOf(answer: Record<string, unknown>): string | null {
  const { error } = answer;
  if (error === undefined || error === null) return null;
  if (typeof error === 'string') return error;
  const { message } = error as { message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(error);
}

interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
}

/** The counts of chat and completions. */
export function tellUsage(answer: Record<string, unknown>, sink: AnswerSink): void {
  const usage = answer.usage as Usage | null | undefined;
  if (usage === null || usage === undefined) return;
  sink.usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details?.cached_tokens);
}
