import type { ChatPlan } from '../../generation/chat-plan.js';
import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChatMessageReader } from '../answering/chat-message.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import { chatLogProb } from '../answering/log-probs.js';
import { collect, type FrameWriter, type StreamForm } from '../answering/respond.js';
import { finishReason } from '../answering/usage.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { CallCollector, type CollectedParts } from './call-collector.js';
import { errorBody } from './errors.js';
import type { Timings } from './timings.js';

export interface AnswerOptions {
  model: ServedGenerator;
  /** The model's name as the client wrote it, which comes back. */
  asked: string;
  plan: ChatPlan;
  run: ChoiceRun;
  timings: Timings;
  /** Field that holds the text of an answer: a message of a chat, or `response`. */
  place: 'message' | 'response';
  logProbs: boolean;
  /** The tokens of prompt and answer come back, for a prompt that follows on. */
  withContext: boolean;
}

/** Lines of JSON. A space before a line is no part of it: readers of JSON skip it. */
export const LINES = {
  contentType: 'application/x-ndjson',
  keepAliveText: ' ',
} as const satisfies StreamForm;

/** An answer of /api/chat or /api/generate, whole or line by line. */
export class OllamaAnswer {
  readonly #options: AnswerOptions;
  readonly #reader: ChatMessageReader;
  readonly #calls: CallCollector;
  readonly #tokens: number[] = [];

  constructor(options: AnswerOptions) {
    const { plan, model } = options;
    this.#options = options;
    this.#reader = new ChatMessageReader(plan, model.codec);
    this.#calls = new CallCollector(() => this.#reader.newCall('').id);
  }

  /** Collects the answer to its end. */
  async whole(clientSignal: AbortSignal): Promise<Response> {
    const { run, logProbs } = this.#options;
    const all: CollectedParts = { content: '', thinking: '', calls: [] };
    const entries: TextLogProb[] = [];
    let reason = 'stop';
    await collect(run, clientSignal, (_, piece) => {
      const { content, thinking, calls } = this.#take(piece);
      all.content += content;
      all.thinking += thinking;
      all.calls.push(...calls);
      if (logProbs) entries.push(...piece.logProbs);
      if (piece.finishReason !== null) reason = finishReason(piece.finishReason);
    });
    return jsonAnswer(
      new JsonObject({
        ...this.#head(),
        ...this.#placed(all),
        ...this.#logProbs(entries),
        ...this.#end(reason),
      }),
    );
  }

  /** Writes the answer line by line. */
  lines(): FrameWriter {
    let last = '';
    return {
      form: LINES,
      endsWithDone: false,
      piece: (_, piece) => {
        const parts = this.#take(piece);
        if (piece.finishReason !== null) last = finishReason(piece.finishReason);
        const isEmpty = parts.content === '' && parts.thinking === '' && parts.calls.length === 0;
        const entries = this.#options.logProbs ? piece.logProbs : [];
        if (isEmpty && entries.length === 0) return '';
        const fields = { ...this.#head(), ...this.#placed(parts), ...this.#logProbs(entries), done: false };
        return `${JSON.stringify(fields)}\n`;
      },
      end: () => {
        const nothing = this.#placed({ content: '', thinking: '', calls: [] });
        return `${JSON.stringify({ ...this.#head(), ...nothing, ...this.#end(last) })}\n`;
      },
      error: (error) => `${errorBody(error)}\n`,
    };
  }

  #take(piece: TextPiece): CollectedParts {
    const { timings, withContext } = this.#options;
    timings.notePiece(piece);
    if (withContext) this.#tokens.push(...piece.tokens);
    const isEnd = piece.finishReason !== null;
    return this.#calls.take(this.#reader.read(piece.text, piece.tokens, isEnd), isEnd);
  }

  #head() {
    return { model: this.#options.asked, created_at: new Date().toISOString() };
  }

  #placed({ content, thinking, calls }: CollectedParts) {
    const besides = {
      ...(thinking === '' ? {} : { thinking }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    if (this.#options.place === 'response') return { response: content, ...besides };
    return { message: { role: 'assistant', content, ...besides } };
  }

  #logProbs(entries: readonly TextLogProb[]) {
    const { codec } = this.#options.model;
    if (!this.#options.logProbs) return {};
    return { logprobs: JsonList.of(entries, (entry) => chatLogProb(codec, entry)) };
  }

  #end(reason: string) {
    const { plan, run, timings, withContext } = this.#options;
    const { promptTokens } = plan;
    const context = () => [...promptTokens, ...this.#tokens];
    return {
      done: true,
      done_reason: reason,
      ...(withContext ? { context: new JsonNumbers(context()) } : {}),
      ...timings.durations(promptTokens.length, run.completionTokens),
    };
  }
}

/** The answer to a request that only asks for the model's load or end. */
export function answerWithoutText(
  asked: string,
  place: AnswerOptions['place'],
  reason: 'load' | 'unload',
): Response {
  const text = place === 'response' ? { response: '' } : { message: { role: 'assistant', content: '' } };
  const created_at = new Date().toISOString();
  return Response.json({ model: asked, created_at, ...text, done: true, done_reason: reason });
}
