import type { Client, Dispatcher } from 'undici';
import type { Backend } from '../backends/backend.js';
import { monotonicMs } from '../clock.js';
import type { Outcome } from '../outcomes.js';
import type { Message, Sample } from '../samples.js';
import { AnswerReader } from './answer-reader.js';
import { outcomeOfError, wordsOfError } from './network-faults.js';

/** Most characters kept of an error's body. */
const MESSAGE_CHARACTERS = 400;
/** Longest wait for Retry-After, in milliseconds. */
const LONGEST_RETRY_MS = 60_000;
const RETRY_MS = 1000;

/** A request to send: a turn of a sample, at its place in the schedule. */
export interface Order {
  request: number;
  sampleNumber: number;
  sample: Sample;
  turn: number;
  /** Time to send it, on the monotonic clock; in a closed loop set when a slot is free. */
  atMs: number;
  /** Messages of earlier turns. */
  earlier: readonly Message[];
  attempts: number;
}

/** Events of a flight for its worker; all are called synchronously while bytes are read. */
export interface FlightObserver {
  firstPiece(flight: Flight): void;
  /**
   * Called with the number of pieces that came together, and the milliseconds since the pieces before; NaN for the
   * first.
   */
  pieces(count: number, nowMs: number, gapMs: number): void;
  /** Called when the answer has been read and the connection is free, before the answer is judged. */
  landed(flight: Flight, isBroken: boolean): void;
  over(flight: Flight, outcome: Outcome, message: string): void;
}

/**
 * One attempt of a request: the handler that undici calls. It makes no promise and awaits nothing. It has the form of
 * undici's own handlers (onConnect, onHeaders ...) rather than that of onRequestStart: around the latter undici makes a
 * wrapper, a controller and an object of all headers for each request, a third of what a dispatch costs.
 */
export class Flight implements Dispatcher.DispatchHandler {
  order!: Order;
  client!: Client;
  sentMs = 0;
  firstMs = Number.NaN;
  lastMs = Number.NaN;
  endMs = Number.NaN;
  /** Time when the last bytes came or, before any, when the request was sent. */
  activeMs = 0;
  status = 0;
  streamed = false;
  reader: AnswerReader | null = null;
  retryAfterMs = RETRY_MS;
  readonly #backend: Backend;
  readonly #observer: FlightObserver;
  #keepText = false;
  /** Reader of an earlier flight, for reuse. */
  #spareReader: AnswerReader | null = null;
  #abort: ((error: Error) => void) | null = null;
  #errorBody = '';
  #abortedAs: { outcome: Outcome; message: string } | null = null;
  #isOver = false;
  #isDispatching = false;

  constructor(backend: Backend, observer: FlightObserver) {
    this.#backend = backend;
    this.#observer = observer;
  }

  /** Takes an order, also after an earlier flight where `canFlyAgain`. */
  board(order: Order, client: Client, keepText: boolean): void {
    this.order = order;
    this.client = client;
    this.#keepText = keepText;
    this.firstMs = Number.NaN;
    this.lastMs = Number.NaN;
    this.endMs = Number.NaN;
    this.status = 0;
    this.streamed = false;
    this.#spareReader = this.reader ?? this.#spareReader;
    this.reader = null;
    this.#abort = null;
    this.#isOver = false;
  }

  /** True where it ended by itself and undici is done with it, so that it may take another order. */
  get canFlyAgain(): boolean {
    return this.#isOver && this.reader !== null && this.#abortedAs === null;
  }

  send(options: Dispatcher.DispatchOptions): void {
    this.sentMs = monotonicMs();
    this.activeMs = this.sentMs;
    this.#isDispatching = true;
    this.client.dispatch(options, this);
    this.#isDispatching = false;
  }

  /** Ends the attempt with this outcome. */
  abort(outcome: Outcome, message: string): void {
    if (this.#isOver) return;
    this.#abortedAs ??= { outcome, message };
    // Without a connection the attempt still waits for one, which ends with the client.
    if (this.#abort === null) this.onError(new Error(message));
    else this.#abort(new Error(message));
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
    // The connection existed: undici's work until now belongs to the client, and its further work is writing. Where a
    // connection had to be made first, that time stays in the measurement.
    if (this.#isDispatching) this.sentMs = monotonicMs();
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    if (status < 200) return true;
    this.status = status;
    this.activeMs = monotonicMs();
    if (status >= 300) {
      this.retryAfterMs = retryAfter(headerOf(headers, 'retry-after'));
      return true;
    }
    this.streamed = headerOf(headers, 'content-type').toLowerCase().includes('text/event-stream');
    const spare = this.#spareReader;
    if (spare?.canReadAgain(this.streamed, this.#keepText)) {
      spare.reset();
      this.reader = spare;
    } else {
      this.reader = new AnswerReader(this.#backend, this.streamed, this.#keepText);
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    const nowMs = monotonicMs();
    this.activeMs = nowMs;
    const { reader } = this;
    if (reader === null) {
      if (this.#errorBody.length < MESSAGE_CHARACTERS) this.#errorBody += chunk.toString('latin1');
      return true;
    }
    const before = reader.pieces;
    reader.feed(chunk);
    if (reader.pieces > before) this.#stamp(reader.pieces - before, nowMs);
    if (reader.fault !== null) this.abort(reader.fault.outcome, reader.fault.message);
    return true;
  }

  onComplete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.endMs = monotonicMs();
    // The connection is free before the answer is judged, so that a waiting request can be sent.
    this.#observer.landed(this, false);
    const { reader } = this;
    if (reader === null) {
      const outcome = this.status === 429 ? 'rate_limited' : 'http_error';
      this.#observer.over(
        this,
        outcome,
        `HTTP ${this.status}: ${this.#errorBody.slice(0, MESSAGE_CHARACTERS)}`,
      );
      return;
    }
    const before = reader.pieces;
    reader.end();
    if (reader.pieces > before) this.#stamp(reader.pieces - before, this.endMs);
    const { fault } = reader;
    this.#observer.over(this, fault?.outcome ?? 'completed', fault?.message ?? '');
  }

  onError(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.endMs = monotonicMs();
    this.#observer.landed(this, true);
    this.#abortedAs ??= { outcome: outcomeOfError(error, this.status !== 0), message: wordsOfError(error) };
    this.#observer.over(this, this.#abortedAs.outcome, this.#abortedAs.message);
  }

  /** Notes pieces with one time for all pieces of one read. */
  #stamp(count: number, nowMs: number): void {
    const isFirst = Number.isNaN(this.firstMs);
    this.#observer.pieces(count, nowMs, isFirst ? Number.NaN : nowMs - this.lastMs);
    this.lastMs = nowMs;
    if (!isFirst) return;
    this.firstMs = nowMs;
    if (this.streamed) this.#observer.firstPiece(this);
  }
}

/**
 * Value of a header among undici's raw ones, names and values in turn; empty where there is none of this (lower case)
 * name.
 */
function headerOf(headers: readonly Buffer[], name: string): string {
  for (let i = 0; i < headers.length; i += 2) {
    const own = headers[i]!;
    if (own.length === name.length && own.toString('latin1').toLowerCase() === name) {
      return headers[i + 1]!.toString('latin1');
    }
  }
  return '';
}

/** Milliseconds to wait by Retry-After, which holds seconds or a date. */
function retryAfter(text: string): number {
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1000;
  if (text === '' || Number.isNaN(ms)) return RETRY_MS;
  return Math.min(LONGEST_RETRY_MS, Math.max(0, ms));
}
