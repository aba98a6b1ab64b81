import { bytesOf, MAX_ANSWER_BYTES, MAX_ANSWERS } from '../../../callbacks/infer/answer-limits.js';
import type { InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import type { EventStream } from '../web/event-stream.js';
import { memoryFull, type RequestMemory } from '../web/memory/request-memory.js';
import { generateJson } from './generate-answer.js';

/** Bytes of tensors of a response that is written in one go: most are a token's. */
const SHORT = 2 ** 16;

/**
 * Writes responses as events, in their order. What is short goes out at once, in the turn of the event loop
 * that made it; what is long is written in parts, with turns of others in between, and what comes meanwhile
 * waits. For a slow client everything waits, up to a limit: a model that asks whether there is room makes
 * nothing then.
 */
export class GenerateStream {
  readonly #stream: EventStream;
  readonly #model: InferModel;
  readonly #id: string;
  readonly #memory: RequestMemory;
  readonly #onFailure: (error: unknown) => void;
  readonly #waiting: InferResponse[] = [];
  #isWriting = false;
  #hasWritten = false;
  /** Bytes of responses that wait, and of events that the client has not read. */
  #heldBytes = 0;
  #numHeld = 0;
  /** Called when there is room, and when nothing is left to be written. */
  #onRoom: (() => void)[] = [];
  #onWritten: (() => void)[] = [];

  /** @param onFailure called where a response cannot be written, or more wait than may */
  constructor(
    stream: EventStream,
    { model, id, memory }: { model: InferModel; id: string; memory: RequestMemory },
    onFailure: (error: unknown) => void,
  ) {
    this.#stream = stream;
    this.#model = model;
    this.#id = id;
    this.#memory = memory;
    this.#onFailure = onFailure;
  }

  /** A part of the answer is out. */
  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  /** Resolves when the client reads again; null: it does. */
  room(): Promise<void> | null {
    if (!this.#isFull) return null;
    return new Promise((resolve) => this.#onRoom.push(resolve));
  }

  get #isFull(): boolean {
    return !this.#stream.closed && (this.#isWriting || this.#stream.isBehind);
  }

  /** The client reads again, or has left. */
  release(): void {
    if (this.#waiting.length === 0) this.#giveBack();
    this.#tellRoom();
  }

  #tellRoom(): void {
    if (this.#isFull) return;
    for (const resolve of this.#onRoom.splice(0)) resolve();
  }

  write(response: InferResponse): void {
    const bytes = bytesOf(response.outputs, response.parameters);
    try {
      if (this.#isFull) this.#hold(bytes);
      if (this.#isWriting || bytes > SHORT) {
        this.#waiting.push(response);
        if (!this.#isWriting) void this.#writeWaiting();
        return;
      }
      this.#send(Array.from(generateJson(this.#model, this.#id, response)).join(''));
      response.release?.();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let response = this.#waiting.shift(); response !== undefined; response = this.#waiting.shift()) {
        if (this.#stream.closed) continue;
        let text = '';
        for (const piece of generateJson(this.#model, this.#id, response)) {
          text += piece;
          this.#hold(piece.length, 0);
          if (piece.length > SHORT) await nextTurn();
        }
        this.#send(text);
        response.release?.();
      }
    } catch (error) {
      this.#waiting.length = 0;
      this.#onFailure(error);
    } finally {
      this.#isWriting = false;
      if (!this.#stream.isBehind) this.#giveBack();
      this.#tellRoom();
      for (const resolve of this.#onWritten.splice(0)) resolve();
    }
  }

  /** Resolves when all responses are written. */
  written(): Promise<void> | null {
    return this.#isWriting ? new Promise((resolve) => this.#onWritten.push(resolve)) : null;
  }

  #send(json: string): void {
    this.#hasWritten = true;
    this.#stream.write(`data: ${json}\n\n`);
  }

  /** Counts what waits. @throws ApiError where it is more than may, or there is no memory for it */
  #hold(bytes: number, responses = 1): void {
    const isTooMuch = this.#numHeld + responses > MAX_ANSWERS || this.#heldBytes + bytes > MAX_ANSWER_BYTES;
    if (isTooMuch || this.#memory.keep(bytes) !== null) throw memoryFull();
    this.#heldBytes += bytes;
    this.#numHeld += responses;
  }

  #giveBack(): void {
    this.#memory.letGo(this.#heldBytes);
    this.#heldBytes = 0;
    this.#numHeld = 0;
  }
}
