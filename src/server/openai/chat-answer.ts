import type { ChatPlan } from '../../generation/chat-plan.js';
import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../served-model.js';
import { ChatMessageReader } from './chat-message.js';
import type { ChoiceRun } from './choice-run.js';
import { Envelope } from './envelope.js';
import { chatLogProbs } from './log-probs.js';
import type { FrameWriter } from './respond.js';
import type { ChatRequest } from './schemas/chat.js';
import { finishReason, stopReason } from './usage.js';

export interface ChatAnswerOptions {
  model: ServedGenerator;
  request: ChatRequest;
  plan: ChatPlan;
  run: ChoiceRun;
  /** The client named the function to call: that is then no news to it. */
  isNamed: boolean;
}

/** The answer of a chat, whole or as a stream. */
export class ChatAnswer {
  readonly #options: ChatAnswerOptions;
  readonly #envelope: Envelope;
  readonly #readers: readonly ChatMessageReader[];

  constructor(options: ChatAnswerOptions) {
    const { model, plan, run } = options;
    this.#options = options;
    this.#readers = Array.from({ length: run.numChoices }, () => new ChatMessageReader(plan, model.codec));
    this.#envelope = new Envelope({
      model,
      run,
      promptTokens: plan.promptTokens.length,
      idPrefix: 'chatcmpl',
      ...(plan.reasoning === null ? {} : { reasoningTokens: () => this.#reasoningTokens() }),
    });
  }

  whole(clientSignal: AbortSignal): Promise<Response> {
    return this.#envelope.whole('chat.completion', clientSignal, (choice, index) => {
      const reader = this.#readers[index]!;
      return {
        index,
        message: reader.message(reader.read(choice.text, choice.tokens, true)),
        logprobs: this.#logProbs(choice.logProbs),
        finish_reason: this.#finishReason(reader, choice.finish),
        stop_reason: choice.stopReason,
      };
    });
  }

  frameWriter(): FrameWriter {
    const { stream_options: streamOptions } = this.#options.request;
    const { chunk, end } = this.#envelope.frames('chat.completion.chunk', streamOptions);
    const begun = new Set<number>();
    const begin = (index: number): string => {
      if (begun.has(index)) return '';
      begun.add(index);
      return chunk(
        `{"index":${index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
      );
    };
    return {
      piece: (index, piece) =>
        begin(index) +
        this.#deltas(index, piece)
          .map((fields) => chunk(`{"index":${index},${fields},"finish_reason":null}`))
          .join('') +
        this.#finish(index, piece, chunk),
      end,
    };
  }

  /** `"delta":{...},"logprobs":...` of what a piece adds; the log-probs come with the first. */
  #deltas(index: number, piece: TextPiece): string[] {
    const reader = this.#readers[index]!;
    const parts = reader.read(piece.text, piece.tokens, piece.finishReason !== null);
    if (parts.length === 0 && piece.logProbs.length === 0) return [];
    const deltas = parts.length === 0 ? ['{}'] : parts.map((part) => reader.delta(part));
    return deltas.map((delta, i) => {
      const logProbs = i === 0 ? JSON.stringify(this.#logProbs(piece.logProbs)) : 'null';
      return `"delta":${delta},"logprobs":${logProbs}`;
    });
  }

  #finish(index: number, piece: TextPiece, chunk: (choice: string) => string): string {
    if (piece.finishReason === null) return '';
    const reason = this.#finishReason(this.#readers[index]!, finishReason(piece.finishReason));
    const stop = JSON.stringify(stopReason(piece));
    return chunk(
      `{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${reason}","stop_reason":${stop}}`,
    );
  }

  #finishReason(reader: ChatMessageReader, reason: 'stop' | 'length') {
    return reason === 'stop' && reader.hasCalls && !this.#options.isNamed ? 'tool_calls' : reason;
  }

  #logProbs(entries: readonly TextLogProb[]) {
    return this.#options.request.logprobs ? chatLogProbs(this.#options.model.codec, entries) : null;
  }

  #reasoningTokens(): number {
    return this.#readers.reduce((sum, reader) => sum + reader.reasoningTokens, 0);
  }
}
