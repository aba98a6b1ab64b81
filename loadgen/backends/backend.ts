import type { Message, Turn } from '../samples.js';

/** Receives the parts of an answer while a backend reads it. */
export interface AnswerSink {
  /** Takes a piece of the answer with text. */
  text(text: string): void;
  /** Takes the server's counts; undefined for a count that it does not report. */
  usage(promptTokens?: number, completionTokens?: number, cachedTokens?: number): void;
  /** Notes that the answer has its end. */
  finish(): void;
  /**
   * Notes that the answer will mark its end: the end of the connection alone is then not enough, whatever the
   * backend's API says.
   */
  goOn(): void;
  /** Takes an error that the server reports inside the answer. */
  fail(message: string): void;
}

export interface BackendOptions {
  name: BackendName;
  model: string;
  /** Path in place of the backend's own. */
  path?: string;
  /** Asks for an event stream. */
  stream: boolean;
  /** Asks the server to continue past the model's end token. */
  ignoreEos: boolean;
  /** Fields for every body. */
  fields: Readonly<Record<string, unknown>>;
}

export const BACKEND_NAMES = ['chat', 'completions', 'responses', 'kserve', 'raw'] as const;
export type BackendName = (typeof BACKEND_NAMES)[number];

/** Backend of one API: writes its requests and reads its answers. Stateless. */
export interface Backend {
  readonly path: string;
  /** Body of a turn's request. `earlier`: messages of the conversation so far. */
  body(turn: Turn, earlier: readonly Message[]): string;
  /** Reads an event. @throws Error for data that does not fit the API. */
  readEvent(data: string, sink: AnswerSink): void;
  /** Reads a body that is not an event stream. @throws Error for one that does not fit the API. */
  readWhole(text: string, sink: AnswerSink): void;
  /** True where the API has no end mark, so that an answer without one is whole. */
  readonly endsWithConnection: boolean;
}

/** A prompt with its earlier messages as one text, for APIs without messages. */
export function asText(turn: Turn, earlier: readonly Message[]): string {
  return [...earlier, ...(turn.history ?? [])].map(({ content }) => `${content}\n`).join('') + turn.prompt;
}

export function asMessages(turn: Turn, earlier: readonly Message[]): Message[] {
  return [...earlier, ...(turn.history ?? []), { role: 'user', content: turn.prompt }];
}

/** Parses JSON. @throws Error where it is no object. */
export function parseObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error('It is no object.');
  return value as Record<string, unknown>;
}

/**
 * The object of an answer or of an event; null where it reports an error, which is passed to the sink.
 * @throws as parseObject.
 */
export function answerOf(text: string, sink: AnswerSink): Record<string, unknown> | null {
  const answer = parseObject(text);
  const error = errorOf(answer);
  if (error === null) return answer;
  sink.fail(error);
  return null;
}

/** Backend of chat or completions, which have their prompts apart and choices with texts. */
export function openAiBackend(
  { path, model, stream, ignoreEos, fields }: BackendOptions,
  ownPath: string,
  promptOf: (turn: Turn, earlier: readonly Message[]) => Record<string, unknown>,
  textOf: (choice: object) => string | null | undefined,
): Backend {
  const common = {
    model,
    stream,
    // Counts at the end of a stream.
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(ignoreEos ? { ignore_eos: true } : {}),
    ...fields,
  };
  const read = (data: string, sink: AnswerSink): void => {
    const answer = answerOf(data, sink);
    if (answer === null) return;
    const choices = (answer.choices ?? []) as { finish_reason?: string | null }[];
    for (const choice of choices) {
      const text = textOf(choice);
      if (text) sink.text(text);
    }
    tellUsage(answer, sink);
    if (choices.some(({ finish_reason }) => typeof finish_reason === 'string')) sink.finish();
  };
  return {
    path: path ?? ownPath,
    endsWithConnection: false,
    body: (turn, earlier) =>
      JSON.stringify({
        ...common,
        ...promptOf(turn, earlier),
        ...(turn.maxTokens === null ? {} : { max_tokens: turn.maxTokens }),
        ...turn.fields,
      }),
    readEvent: (data, sink) => {
      if (data === '[DONE]') sink.finish();
      else read(data, sink);
    },
    readWhole: read,
  };
}

/** Message of an answer's error object; null where there is none. */
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

/** Passes the counts of chat and completions to the sink. */
function tellUsage(answer: Record<string, unknown>, sink: AnswerSink): void {
  const usage = answer.usage as Usage | null | undefined;
  if (usage === null || usage === undefined) return;
  sink.usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details?.cached_tokens);
}
