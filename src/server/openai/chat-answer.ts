import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChatPlan } from '../../generation/chat-plan.js';
import { templateMessage } from '../../generation/messages.js';
import { imageTokensOf } from '../../generation/pictures/seen-request.js';
import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { AnswerPart } from '../../generation/tools/types.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { type CallField, ChatMessageReader } from '../answering/chat-message.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import { chatLogProbs, chatLogProbsJson, promptLogProbs, tokenNames } from '../answering/log-probs.js';
import { isOnlyProgress, progressField } from '../answering/prompt-progress.js';
import type { FrameWriter } from '../answering/respond.js';
import { timingsField, timingsOf } from '../answering/timings.js';
import { finishReason, stopReason } from '../answering/usage.js';
import { JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { type CollectedChoice, Envelope } from './envelope.js';
import type { ChatRequest } from './schemas/chat.js';

export interface ChatAnswerOptions {
  model: ServedGenerator;
  request: ChatRequest;
  plan: ChatPlan;
  run: ChoiceRun;
  /**
   * True where the client named the function to call, and so needs no finish reason that reports the call.
   */
  isNamed: boolean;
  callField: CallField;
  /** Whether the answer may be a call, or has to be one. */
  calls: 'none' | 'possible' | 'forced';
}

const NOTHING_BESIDES = '"logprobs":null,"finish_reason":null}';

/** Answer of a chat, whole or as a stream. */
export class ChatAnswer {
  readonly #options: ChatAnswerOptions;
  readonly #envelope: Envelope;
  readonly #readers: readonly ChatMessageReader[];

  constructor(options: ChatAnswerOptions) {
    const { model, request, plan, run, callField } = options;
    const givesReasoning = request.include_reasoning ?? true;
    this.#options = options;
    this.#readers = Array.from(
      { length: run.numChoices },
      () => new ChatMessageReader(plan, model.codec, { callField, givesReasoning }),
    );
    this.#envelope = new Envelope({
      model,
      run,
      promptTokens: plan.promptTokens.length,
      imageTokens: imageTokensOf(plan),
      idPrefix: 'chatcmpl',
      ...(plan.reasoning === null ? {} : { reasoningTokens: () => this.#reasoningTokens() }),
    });
  }

  whole(clientSignal: AbortSignal): Promise<Response> {
    const messages: object[] = [];
    // All messages are read first: they decide what other fields say (the usage), and whether they can be read at all.
    const read = async (choices: readonly CollectedChoice[]) => {
      for (const [index, { text, tokens }] of choices.entries()) {
        const reader = this.#readers[index]!;
        messages.push(this.#echoed(reader.message(reader.read(text, tokens, true))));
        if (index + 1 < choices.length) await nextTurn();
      }
    };
    const toJson = (choice: CollectedChoice, index: number) => {
      const reader = this.#readers[index]!;
      return new JsonObject({
        index,
        message: new JsonObject(messages[index]!),
        logprobs: this.#logProbs(choice.logProbs),
        finish_reason: this.#finishReason(reader, choice.finish),
        stop_reason: choice.stopReason,
        ...(this.#givesTokens ? { token_ids: new JsonNumbers(choice.tokens) } : {}),
        seed: this.#seed,
      });
    };
    return this.#envelope.whole('chat.completion', clientSignal, toJson, () => this.#ofPrompt(), read);
  }

  /** Content of the last message, where the answer repeats it; else ''. */
  get #echo(): string {
    const { request } = this.#options;
    const last = request.messages.at(-1)!;
    if (!request.echo || last.role !== 'assistant') return '';
    const { content } = templateMessage(last);
    return typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('\n');
  }

  #echoed<T extends { content: string | null }>(message: T): T {
    const echo = this.#echo;
    return echo === '' ? message : { ...message, content: echo + (message.content ?? '') };
  }

  /** Fields about the prompt, next to the choices. */
  #ofPrompt() {
    const { model, request, run } = this.#options;
    const asked = request.prompt_logprobs;
    const count = asked === -1 ? model.vocabSize : asked;
    const found = run.promptLogProbs[0] ?? null;
    return {
      ...(count === undefined ? {} : { prompt_logprobs: promptLogProbs(model.codec, found, count) }),
      ...(this.#givesTokens ? { prompt_token_ids: new JsonNumbers(this.#options.plan.promptTokens) } : {}),
      ...timingsOf(request, run),
    };
  }

  get #givesTokens(): boolean {
    return this.#options.request.return_token_ids ?? false;
  }

  get #seed(): number {
    return Number(this.#options.run.seeds[0]);
  }

  frameWriter(): FrameWriter {
    const { request, run } = this.#options;
    const { chunk: bare, end } = this.#envelope.frames('chat.completion.chunk', request.stream_options);
    const chunk = (choice: string, fields = '') => bare(choice, fields + timingsField(request, run));
    const echo = this.#echo;
    const echoed = echo === '' ? null : `"delta":${JSON.stringify({ content: echo })},${NOTHING_BESIDES}`;
    const begun = new Set<number>();
    const begin = (index: number, parts: readonly AnswerPart[]): string => {
      if (begun.has(index)) return '';
      const isFirst = begun.size === 0;
      begun.add(index);
      const isCall = parts.length === 0 ? this.#options.calls === 'forced' : parts[0]!.type === 'call';
      const content = isCall ? 'null' : '""';
      const role = chunk(
        `{"index":${index},"delta":{"role":"assistant","content":${content}},"logprobs":null,"finish_reason":null}`,
        isFirst && this.#givesTokens ? `,"prompt_token_ids":[${this.#options.plan.promptTokens.join()}]` : '',
      );
      return echoed === null ? role : role + chunk(`{"index":${index},${echoed}`);
    };
    const told = (index: number, piece: TextPiece): string => {
      const progress = progressField(piece, this.#options.plan.promptTokens.length);
      if (progress === '') return '';
      // As llama.cpp writes it: each of these chunks has the role.
      return chunk(
        `{"index":${index},"delta":{"role":"assistant","content":null},${NOTHING_BESIDES}`,
        progress,
      );
    };
    return {
      piece: (index, piece) => {
        const progress = told(index, piece);
        if (isOnlyProgress(piece)) return progress;
        const parts = this.#readers[index]!.read(piece.text, piece.tokens, piece.finishReason !== null);
        const deltas = this.#deltas(index, piece, parts, chunk);
        // Until its first part an answer may still turn out to be a call, which has no content.
        if (deltas === '' && piece.finishReason === null && this.#options.calls === 'possible')
          return progress;
        return progress + begin(index, parts) + deltas + this.#finish(index, piece, chunk);
      },
      end,
    };
  }

  /** Chunks for the parts that a piece adds; log-probs and token ids come with the first. */
  #deltas(
    index: number,
    piece: TextPiece,
    parts: readonly AnswerPart[],
    chunk: (choice: string) => string,
  ): string {
    const { model, request } = this.#options;
    const reader = this.#readers[index]!;
    const givesTokens = this.#givesTokens && piece.tokens.length > 0;
    const givesLogProbs = request.logprobs === true && piece.logProbs.length > 0;
    if (parts.length === 0 && !givesLogProbs && !givesTokens) return '';
    const logProbs = request.logprobs
      ? chatLogProbsJson(model.codec, piece.logProbs, tokenNames(request))
      : 'null';
    const tokens = givesTokens ? `,"token_ids":[${piece.tokens.join()}]` : '';
    let besides = `"logprobs":${logProbs}${tokens},"finish_reason":null}`;
    if (parts.length === 0) return chunk(`{"index":${index},"delta":{},${besides}`);
    let chunks = '';
    for (const part of parts) {
      chunks += chunk(`{"index":${index},"delta":${reader.delta(part)},${besides}`);
      besides = NOTHING_BESIDES;
    }
    return chunks;
  }

  #finish(index: number, piece: TextPiece, chunk: (choice: string) => string): string {
    if (piece.finishReason === null) return '';
    const reason = this.#finishReason(this.#readers[index]!, finishReason(piece.finishReason));
    const stop = JSON.stringify(stopReason(piece));
    return chunk(
      `{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${reason}","stop_reason":${stop},"seed":${this.#seed}}`,
    );
  }

  #finishReason(reader: ChatMessageReader, reason: 'stop' | 'length') {
    if (reason !== 'stop' || !reader.hasCalls || this.#options.isNamed) return reason;
    return this.#options.callField;
  }

  #logProbs(entries: readonly TextLogProb[]) {
    const { request, model } = this.#options;
    return request.logprobs ? chatLogProbs(model.codec, entries, tokenNames(request)) : null;
  }

  #reasoningTokens(): number {
    return this.#readers.reduce((sum, reader) => sum + reader.reasoningTokens, 0);
  }
}
