import { STREAM_HEADERS } from '../../answering/respond.js';
import { EventStream, type EventStreamOptions } from '../../web/event-stream.js';
import type { Exchange } from '../../web/exchange.js';
import { framesIn } from './event-splicer.js';

/** The events of a response in their order, for readers that come, leave and come again. An event's index is its number. */
export class EventLog {
  readonly #frames: string[];
  readonly #readers = new Set<() => void>();
  #hasEnded: boolean;
  #onUnread: (() => void) | null = null;

  /** @param frames events so far; absent: none have come yet @param hasEnded default: true where there are some */
  constructor(frames?: readonly string[], hasEnded = frames !== undefined) {
    this.#frames = [...(frames ?? [])];
    this.#hasEnded = hasEnded;
  }

  get frames(): readonly string[] {
    return this.#frames;
  }

  /** True while it has a reader. */
  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Adds the events of a text of whole frames. */
  append(text: string): void {
    this.#frames.push(...framesIn(text));
    this.#tell();
  }

  end(): void {
    this.#hasEnded = true;
    this.#tell();
  }

  /** Calls a reader whenever there is more, or the end. Returns the function that ends this. */
  follow(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => {
      this.#readers.delete(reader);
      this.#checkUnread();
    };
  }

  /** Calls `then` once, when the log has ended and has no reader: a slow reader keeps it alive. */
  whenUnread(then: () => void): void {
    this.#onUnread = then;
    this.#checkUnread();
  }

  #checkUnread(): void {
    if (!this.#hasEnded || this.#readers.size > 0) return;
    const then = this.#onUnread;
    this.#onUnread = null;
    then?.();
  }

  #tell(): void {
    for (const reader of [...this.#readers]) reader();
  }
}

/**
 * Answers with a response's events after a number, up to its end. A reader that is slow or leaves delays
 * nothing: the events wait in the log.
 */
export function eventsAnswer(
  log: EventLog,
  after: number,
  options: EventStreamOptions,
  { signal, connection }: Exchange,
): Response {
  let next = after + 1;
  let leave = () => {};
  const stream = new EventStream(options, { onGone: () => leave(), onDrain: () => tell(), connection });
  const tell = (): void => {
    while (next < log.frames.length && !stream.isBehind && !stream.closed) stream.write(log.frames[next++]!);
    if (!log.hasEnded || next < log.frames.length) return;
    leave();
    stream.close();
  };
  leave = log.follow(tell);
  signal.addEventListener('abort', () => leave(), { once: true });
  tell();
  return new Response(stream.body, { headers: STREAM_HEADERS });
}
