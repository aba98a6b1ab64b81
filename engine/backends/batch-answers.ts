import {
  bytesOf,
  MAX_ANSWER_BYTES,
  MAX_ANSWERS,
  MAX_ANSWERS_TEXT,
} from '../../callbacks/infer/answer-limits.js';
import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { AnswerFlow } from './answer-flow.js';
import { AnswerWriter } from './packed-answers.js';

/** Answers, and bytes of answers, that go in one message where a model gives several; one answer may be longer. */
export const SLICE_ANSWERS = 64;
const SLICE_BYTES = 2 ** 20;

interface Waiting {
  answers: number;
  bytes: number;
}

/** Where the requests of a batch put what they are answered. */
export interface AnswerSink {
  /** Why this request can have no further answer now; null: it can. */
  whyFull(request: number): string | null;
  respond(request: number, outputs: readonly InferTensor[], parameters: InferParameters | null): void;
  end(request: number): void;
  fail(request: number, reason: string): void;
  /** Resolves when answers may come without waiting. */
  readonly room: Promise<void>;
}

/** The answers to the requests of a batch. Those of a decoupled model go as they come, several to a message; others with the end of the batch. */
export class BatchAnswers implements AnswerSink {
  readonly #writer: AnswerWriter;
  readonly #flow: AnswerFlow;
  readonly #isDecoupled: boolean;
  /** Of each request, what was not sent yet. */
  readonly #waiting: Waiting[];
  /** Of the slice that is being written. */
  #slice: { request: number; bytes: number }[] = [];
  #sliceBytes = 0;
  #timer: NodeJS.Immediate | null = null;

  constructor(flow: AnswerFlow, numRequests: number, isDecoupled: boolean, lent: ArrayBuffer | null) {
    this.#writer = new AnswerWriter(lent);
    this.#flow = flow;
    this.#isDecoupled = isDecoupled;
    this.#waiting = Array.from({ length: numRequests }, () => ({ answers: 0, bytes: 0 }));
  }

  whyFull(request: number): string | null {
    const { answers, bytes } = this.#waiting[request]!;
    if (answers < MAX_ANSWERS && bytes < MAX_ANSWER_BYTES) return null;
    return `more than ${MAX_ANSWERS_TEXT} to one request wait to be sent; await the promise that send returns`;
  }

  respond(request: number, outputs: readonly InferTensor[], parameters: InferParameters | null): void {
    this.#writer.respond(request, outputs, parameters);
    if (!this.#isDecoupled) return;
    const bytes = bytesOf(outputs, parameters);
    const waiting = this.#waiting[request]!;
    waiting.answers++;
    waiting.bytes += bytes;
    this.#slice.push({ request, bytes });
    this.#sliceBytes += bytes;
    if (this.#slice.length >= SLICE_ANSWERS || this.#sliceBytes >= SLICE_BYTES) this.#endSlice();
    else this.#timer ??= setImmediate(() => this.#endSlice());
  }

  end(request: number): void {
    this.#writer.end(request);
  }

  fail(request: number, reason: string): void {
    this.#writer.fail(request, reason);
  }

  get room(): Promise<void> {
    return this.#flow.room;
  }

  /** Resolves with what goes with the end of the batch, when all before that is sent. */
  async finish(): Promise<ReturnType<AnswerWriter['take']>> {
    if (this.#timer !== null) clearImmediate(this.#timer);
    this.#timer = null;
    await this.#flow.room;
    return this.#writer.take();
  }

  #endSlice(): void {
    if (this.#timer !== null) clearImmediate(this.#timer);
    this.#timer = null;
    const sent = this.#slice;
    this.#slice = [];
    this.#sliceBytes = 0;
    this.#flow.add({
      answers: this.#writer.take(),
      onSent: () => {
        for (const { request, bytes } of sent) {
          this.#waiting[request]!.answers--;
          this.#waiting[request]!.bytes -= bytes;
        }
      },
    });
  }
}
