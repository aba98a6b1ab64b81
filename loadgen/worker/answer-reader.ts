import { isAscii } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceMessage, type EventSourceParser } from 'eventsource-parser';
import { messageOf } from '../../base/error-text.js';
import type { AnswerSink, Backend } from '../backends/backend.js';
import { RepeatedEvent } from './repeated-event.js';
import { StreamLines } from './stream-lines.js';

/** Longest event, and longest body that is not a stream, in characters. */
const LONGEST = 64 * 2 ** 20;

/** Why data is no valid answer. */
export interface AnswerFault {
  outcome: 'malformed' | 'stream_error' | 'truncated' | 'empty';
  message: string;
}

/**
 * Reads one answer as its bytes come, cut anywhere. It works synchronously: when `feed` returns, everything in these
 * bytes has been counted. An incomplete character or event waits for the next bytes.
 */
export class AnswerReader implements AnswerSink {
  /** Number of pieces with text so far. */
  pieces = 0;
  textLength = 0;
  promptTokens = Number.NaN;
  completionTokens = Number.NaN;
  cachedTokens = Number.NaN;
  isFinished = false;
  fault: AnswerFault | null = null;
  readonly #backend: Backend;
  /** Decoder, from the first bytes on that are not ASCII. */
  #decoder: StringDecoder | null = null;
  readonly #parser: EventSourceParser | null;
  readonly #shape: RepeatedEvent | null;
  readonly #texts: string[] | null;
  /** Parts of a body that is not a stream. */
  #body: string[] = [];
  #bodyLength = 0;
  readonly #lines = new StreamLines();
  /** True once the stream has ended: an event that the parser emits after that had no proper end. */
  #isAtEnd = false;
  #endsWithinEvent = false;
  #hasEndMark: boolean;
  #learning: { pieces: number; text: string; isPlain: boolean } | null = null;

  constructor(backend: Backend, isStream: boolean, keepText: boolean) {
    this.#backend = backend;
    this.#hasEndMark = !backend.endsWithConnection;
    this.#texts = keepText ? [] : null;
    this.#parser = isStream
      ? createParser({
          onEvent: (event) => this.#onEvent(event),
          // Unknown fields and unusable values are no faults: the standard skips them.
          onError: ({ type, message }) => {
            if (type === 'max-buffer-size-exceeded') this.#malformed(`${message} in an event stream`);
          },
          maxBufferSize: LONGEST,
        })
      : null;
    this.#shape = isStream ? new RepeatedEvent((data) => meaningOf(backend, data)) : null;
  }

  get answer(): string {
    return this.#texts?.join('') ?? '';
  }

  /** True where it can be reset for an answer of this kind. */
  canReadAgain(isStream: boolean, keepText: boolean): boolean {
    return (this.#parser !== null) === isStream && (this.#texts !== null) === keepText;
  }

  /** Resets the reader, except for its knowledge of events, which holds for every answer of its backend. */
  reset(): void {
    this.pieces = 0;
    this.textLength = 0;
    this.promptTokens = Number.NaN;
    this.completionTokens = Number.NaN;
    this.cachedTokens = Number.NaN;
    this.isFinished = false;
    this.fault = null;
    this.#decoder = null;
    this.#parser?.reset();
    this.#shape?.beginStream();
    if (this.#texts !== null) this.#texts.length = 0;
    this.#body = [];
    this.#bodyLength = 0;
    this.#lines.reset();
    this.#isAtEnd = false;
    this.#endsWithinEvent = false;
    this.#hasEndMark = !this.#backend.endsWithConnection;
    this.#learning = null;
  }

  feed(bytes: Buffer): void {
    // ASCII has no characters to be cut, and decodes fastest.
    if (this.#decoder === null && isAscii(bytes)) {
      this.#feedText(bytes.toString('latin1'));
      return;
    }
    this.#decoder ??= new StringDecoder('utf8');
    this.#feedText(this.#decoder.write(bytes));
  }

  /** Ends the HTTP body, and sets `fault` where it is no valid answer. */
  end(): void {
    if (this.#decoder !== null) this.#feedText(this.#decoder.end());
    if (this.fault !== null) return;
    if (this.#parser === null) this.#readWhole();
    else if (!this.isFinished && this.#isWithinEvent()) {
      this.#fail('truncated', 'The stream ends within an event.');
    }
    if (this.fault !== null) return;
    if (!this.isFinished && this.#hasEndMark && (this.#parser !== null || this.pieces > 0)) {
      this.#fail('truncated', 'The answer ends without a finish reason and without [DONE].');
    } else if (this.pieces === 0) {
      this.#fail('empty', 'The answer has no text.');
    }
  }

  text(text: string): void {
    this.pieces++;
    this.textLength += text.length;
    this.#texts?.push(text);
    if (this.#learning !== null) {
      this.#learning.text = text;
      this.#learning.pieces++;
    }
  }

  usage(promptTokens?: number, completionTokens?: number, cachedTokens?: number): void {
    this.promptTokens = promptTokens ?? this.promptTokens;
    this.completionTokens = completionTokens ?? this.completionTokens;
    this.cachedTokens = cachedTokens ?? this.cachedTokens;
    if (this.#learning !== null) this.#learning.isPlain = false;
  }

  finish(): void {
    this.isFinished = true;
    if (this.#learning !== null) this.#learning.isPlain = false;
  }

  goOn(): void {
    this.#hasEndMark = true;
  }

  fail(message: string): void {
    this.#fail('stream_error', message);
  }

  #feedText(text: string): void {
    if (this.fault !== null || text === '') return;
    if (this.#parser === null) {
      this.#bodyLength += text.length;
      if (this.#bodyLength > LONGEST) this.#malformed(`A body of more than ${LONGEST} characters`);
      else this.#body.push(text);
      return;
    }
    const lines = this.#lines.take(text);
    if (lines !== '') this.#parser.feed(lines);
  }

  /**
   * True where the stream's last line has no end, or an event is not followed by an empty line; comments and other
   * fields need none.
   */
  #isWithinEvent(): boolean {
    if (this.#lines.isWithinLine) return true;
    this.#isAtEnd = true;
    this.#parser!.feed('\n');
    return this.#endsWithinEvent;
  }

  #onEvent({ data }: EventSourceMessage): void {
    if (this.#isAtEnd) {
      this.#endsWithinEvent = true;
      return;
    }
    const shape = this.#shape!;
    const length = shape.textLength(data);
    if (length >= 0) {
      this.pieces++;
      this.textLength += length;
      this.#texts?.push(shape.text(data));
      return;
    }
    if (this.fault !== null || data === '') return;
    const seen = { pieces: 0, text: '', isPlain: true };
    this.#learning = seen;
    try {
      this.#backend.readEvent(data, this);
    } catch (error) {
      this.#malformed(`${messageOf(error)}: ${data.slice(0, 200)}`);
    }
    this.#learning = null;
    // The first piece often has a form of its own, with a role; an answer of one piece needs no shape.
    if (seen.isPlain && seen.pieces === 1 && this.pieces > 1) shape.learn(data, seen.text);
  }

  #readWhole(): void {
    const text = this.#body.join('');
    try {
      this.#backend.readWhole(text, this);
      // A whole body needs no finish reason: JSON that parses has its end.
      this.isFinished = true;
    } catch (error) {
      this.#malformed(`${messageOf(error)}: ${text.slice(0, 200)}`);
    }
  }

  #malformed(message: string): void {
    this.#fail('malformed', message);
  }

  #fail(outcome: AnswerFault['outcome'], message: string): void {
    this.fault ??= { outcome, message };
  }
}

/** Text of an event that holds one piece of text and nothing else; null for any other. */
function meaningOf(backend: Backend, data: string): string | null {
  let text: string | null = null;
  let isPlain = true;
  const spoil = () => {
    isPlain = false;
  };
  try {
    backend.readEvent(data, {
      text: (piece) => {
        if (text !== null) isPlain = false;
        text = piece;
      },
      usage: spoil,
      finish: spoil,
      goOn: () => {},
      fail: spoil,
    });
  } catch {
    return null;
  }
  return isPlain ? text : null;
}
