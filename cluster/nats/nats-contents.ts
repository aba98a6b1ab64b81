import { randomBytes } from 'node:crypto';
import type { JetStreamManager, JsMsg, StoredMsg } from '@nats-io/jetstream';
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import { StoreError, TakenOverError } from '../../base/store-errors.js';
import { JetStore, type JetStoreOptions, STORE_TIMEOUT_MS, STORE_TRIES } from './jet-store.js';
import type { NatsModules } from './work-stream.js';

const ID = /^[\w-]{1,128}$/;
/** Bytes of a message of a content at most: small enough that others pass between two of them. */
const CHUNK_BYTES = 256 * 1024;
/** Header with the bytes of a content up to the end of a message. */
const END = 'Skein-End';
/** Header of a message that is followed by more of the same piece: the bytes in front of the piece. */
const BEGIN = 'Skein-Begin';
/** Contents of which it is known where they were read up to. */
const MAX_READ_TO = 1024;
/** Messages that are asked for at once while a content is read: 16 MiB at most. */
const READ_MESSAGES = 64;
/** Messages that are taken away at once. */
const ERASED_AT_ONCE = 16;
/** Milliseconds that they may take. */
const READ_EXPIRES_MS = STORE_TIMEOUT_MS;
/** Milliseconds in which all of them must have come: a server that dies says nothing. */
const READ_LIMIT_MS = 2 * READ_EXPIRES_MS;
/** Milliseconds that who has a part of a content waits for the next one, where NATS is away. */
const PATIENCE_MS = 30_000;

/**
 * Contents by id, which grow at their end, in a stream of JetStream that any number of processes share. A
 * message is a piece of one content, or a part of a piece, under the content's own subject; a piece of which
 * parts are missing at the end does not count. The writer says with each message which one is the last so
 * far: of two processes that both believe to be the writer, the NATS server takes the messages of one and
 * refuses the other's.
 */
export class NatsContents {
  readonly #store: JetStore;
  readonly #subjects: string;
  /** Where contents were read up to that grow: the next reading begins there. */
  readonly #readTo = new Map<string, { bytes: number; sequence: number }>();

  /** @param subjects prefix of the contents' subjects */
  constructor(
    nc: NatsConnection,
    modules: NatsModules,
    stream: string,
    subjects: string,
    options: JetStoreOptions,
  ) {
    this.#subjects = subjects;
    this.#store = new JetStore(nc, modules, stream, options, {
      subjects: [`${subjects}.*`],
      retention: 'limits',
    });
  }

  /** Makes the stream where it is not there. @throws StoreError */
  open(): Promise<void> {
    return this.#store.ensure();
  }

  /** Begins a content. @throws StoreError */
  async begin(id: string): Promise<NatsContent> {
    return new NatsContent(this.#store, this.#subject(id), 0, 0);
  }

  /**
   * Resumes a content that was read, and has `bytes` bytes of whole pieces. @throws StoreError where it has
   * others: it must be read again
   */
  async goOn(id: string, bytes: number): Promise<NatsContent> {
    const subject = this.#subject(id);
    const last = await this.#last(subject);
    const found = last === null ? 0 : wholeOf(last);
    // An earlier try has been stored meanwhile, or the server that was asked had not caught up with the others.
    if (found !== bytes) throw this.#store.away(`the content ${id} has ${found} bytes now, and not ${bytes}`);
    return new NatsContent(this.#store, subject, bytes, last?.seq ?? 0);
  }

  /** Bytes of a content; null: there is none. @throws StoreError */
  async size(id: string): Promise<number | null> {
    if (!ID.test(id)) return null;
    const last = await this.#last(this.#subject(id));
    return last === null ? null : wholeOf(last);
  }

  /**
   * What a content has now, piece by piece, from a number of bytes on, where a piece ends; null: there is none.
   * @param least bytes that it is known to have @throws StoreError, and so may reading it
   */
  async read(id: string, from = 0, least = 0): Promise<AsyncIterable<Buffer> | null> {
    if (!ID.test(id)) return null;
    const last = await this.#last(this.#subject(id));
    if (last === null) return null;
    const bytes = wholeOf(last);
    if (bytes < least) throw this.#store.away(`the content ${id} has ${bytes} bytes, and not ${least} yet`);
    return this.#pieces(id, from, bytes, last.seq);
  }

  /** Where reading begins: after what was read before, or at the beginning. */
  #begin(id: string, from: number): { bytes: number; sequence: number } {
    const known = this.#readTo.get(id);
    return known !== undefined && known.bytes === from ? known : { bytes: 0, sequence: 0 };
  }

  #note(id: string, bytes: number, sequence: number): void {
    this.#readTo.delete(id);
    this.#readTo.set(id, { bytes, sequence });
    const [oldest] = this.#readTo.keys();
    if (this.#readTo.size > MAX_READ_TO) this.#readTo.delete(oldest!);
  }

  async *#pieces(
    id: string,
    from: number,
    length: number,
    lastSequence: number,
  ): AsyncGenerator<Buffer, void, undefined> {
    const subject = this.#subject(id);
    let { bytes, sequence } = this.#begin(id, from);
    let piece: Buffer[] = [];
    let isBegun = false;
    while (bytes < length) {
      // The reader may take long between two messages: nothing waits for that in the NATS server.
      const next = sequence + 1;
      const fetch = () => fetchMessages(this.#store, subject, next, lastSequence);
      for (const message of await this.#store.wait(fetch, isBegun ? PATIENCE_MS : 0)) {
        const { begin, end } = partsOf(message.headers);
        // A new piece begins: the one before it was not ended.
        if (end - message.data.length === bytes) piece = [];
        piece.push(Buffer.from(message.data));
        sequence = message.seq;
        if (begin !== null) continue;
        if (bytes + lengthOf(piece) !== end) throw this.#broken(id, bytes);
        bytes = end;
        this.#note(id, bytes, sequence);
        if (bytes > from) {
          isBegun = true;
          yield Buffer.concat(piece);
        }
        piece = [];
        if (bytes >= length) return;
      }
      if (sequence >= lastSequence && bytes < length) throw this.#broken(id, bytes);
    }
  }

  #broken(id: string, at: number): StoreError {
    return new StoreError('foreign', `The content ${id} has a gap after ${at} bytes.`);
  }

  /** @throws StoreError */
  async remove(id: string): Promise<void> {
    if (ID.test(id)) await eraseAll(this.#store, this.#subject(id));
  }

  /** Ids of all contents. @throws StoreError */
  async ids(): Promise<string[]> {
    const ask = (manager: JetStreamManager) =>
      manager.streams.info(this.#store.stream, { subjects_filter: `${this.#subjects}.*` });
    const { state } = await this.#store.ask(ask);
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(this.#subjects.length + 1));
  }

  #last(subject: string): Promise<StoredMsg | null> {
    return lastOf(this.#store, subject);
  }

  #subject(id: string): string {
    if (!ID.test(id)) throw new StoreError('foreign', `${JSON.stringify(id)} is no id of a content.`);
    return `${this.#subjects}.${id}`;
  }
}

function lastOf(store: JetStore, subject: string): Promise<StoredMsg | null> {
  return store.find((manager) => manager.streams.getMessage(store.stream, { last_by_subj: subject }));
}

/** Messages of a subject from one on; there is at least one. @throws where none comes, StoreError where the content is gone */
async function fetchMessages(
  store: JetStore,
  subject: string,
  from: number,
  lastSequence: number,
  more: { headers_only?: boolean } = {},
): Promise<JsMsg[]> {
  const { stream, client } = store;
  const filter = { filter_subjects: subject, opt_start_seq: from, ...more };
  const consumer = await client.consumers.get(stream, filter);
  const messages: JsMsg[] = [];
  const coming = await consumer.fetch({ max_messages: READ_MESSAGES, expires: READ_EXPIRES_MS });
  // Without an answer it asks again and again whether its consumer is there.
  const late = setTimeout(() => coming.stop(), READ_LIMIT_MS);
  try {
    for await (const message of coming) {
      messages.push(message);
      if (message.seq >= lastSequence) break;
    }
  } finally {
    clearTimeout(late);
    void consumer.delete().catch(() => {});
  }
  if (messages.length > 0) return messages;
  if ((await lastOf(store, subject)) !== null) throw new Error('no message comes');
  throw new StoreError('foreign', `The content of ${subject} was removed while it was read.`);
}

/**
 * Removes a content, its last message at the end: nats-server 2.9 reports nothing about a content whose last
 * message is gone.
 * @throws StoreError
 */
async function eraseAll(store: JetStore, subject: string): Promise<void> {
  const last = await lastOf(store, subject);
  if (last === null) return;
  for (let from = 1; from <= last.seq; ) {
    const next = from;
    const fetch = () => fetchMessages(store, subject, next, last.seq, { headers_only: true });
    const messages = await store.ask(fetch).catch((error: unknown) => {
      // Another process has removed it meanwhile.
      if (error instanceof StoreError && error.kind === 'foreign') return [];
      throw error;
    });
    if (messages.length === 0) return;
    from = messages.at(-1)!.seq + 1;
    const others = messages.map(({ seq }) => seq).filter((sequence) => sequence !== last.seq);
    while (others.length > 0)
      await Promise.all(others.splice(0, ERASED_AT_ONCE).map((sequence) => store.erase(sequence)));
  }
  await store.erase(last.seq);
}

/** Bytes up to the end of a message, and, where more of its piece comes, those in front of the piece; else null. @throws StoreError */
function partsOf(headers: MsgHdrs | undefined): { end: number; begin: number | null } {
  const end = Number(headers?.get(END) || Number.NaN);
  const begin = headers?.has(BEGIN) ? Number(headers.get(BEGIN)) : null;
  if (Number.isSafeInteger(end) && end >= (begin ?? 0)) return { end, begin };
  throw new StoreError('foreign', 'What is stored has a message that is no piece of a content.');
}

/** Bytes of all whole pieces up to a message. */
function wholeOf({ header }: StoredMsg): number {
  const { begin, end } = partsOf(header);
  return begin ?? end;
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** A content that this process writes. */
class NatsContent {
  readonly #store: JetStore;
  readonly #subject: string;
  readonly #nonce = randomBytes(9).toString('base64url');
  #bytes: number;
  #sequence: number;
  /** Done when all so far is stored. */
  #written: Promise<void> = Promise.resolve();

  constructor(store: JetStore, subject: string, bytes: number, sequence: number) {
    this.#store = store;
    this.#subject = subject;
    this.#bytes = bytes;
    this.#sequence = sequence;
  }

  /**
   * Appends bytes to those so far, as a piece of their own. @throws StoreError, TakenOverError: so does all
   * that follows
   */
  append(bytes: Uint8Array): Promise<void> {
    const written = this.#written.then(() => this.#append(bytes));
    written.catch(() => {});
    this.#written = written;
    return written;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    const most = Math.min(CHUNK_BYTES, this.#store.maxMessageBytes);
    const begin = this.#bytes;
    for (let at = 0; at < bytes.length; at += most) {
      const isLast = at + most >= bytes.length;
      await this.#send(
        bytes.subarray(at, at + most),
        begin + Math.min(at + most, bytes.length),
        isLast ? null : begin,
      );
    }
    this.#bytes = begin + bytes.length;
  }

  /** @param begin bytes in front of the piece, where more of it comes */
  async #send(part: Uint8Array, end: number, begin: number | null): Promise<void> {
    const headers = this.#store.modules.nats.headers();
    headers.set(END, String(end));
    if (begin !== null) headers.set(BEGIN, String(begin));
    // A message whose acknowledgement was lost is known by this when it is sent again.
    const msgID = `${this.#nonce}.${end}`;
    const expect = { lastSubjectSequence: this.#sequence };
    for (let tried = 1; ; tried++) {
      try {
        const { seq } = await this.#store.with(() =>
          this.#store.client.publish(this.#subject, part, { headers, msgID, expect }),
        );
        this.#sequence = seq;
        return;
      } catch (error) {
        if (!this.#store.isBehind(error)) {
          const isAway = error instanceof StoreError && error.kind === 'away';
          if (!isAway || tried === STORE_TRIES) throw error;
        } else {
          this.#sequence = await this.#sequenceOf(msgID);
          return;
        }
      }
    }
  }

  /** The sequence of the last message, which has to be this one. @throws StoreError, TakenOverError */
  async #sequenceOf(msgID: string): Promise<number> {
    const last = await this.#store.ask((manager) =>
      manager.streams.getMessage(this.#store.stream, { last_by_subj: this.#subject }),
    );
    if (last?.header.get('Nats-Msg-Id') === msgID) return last.seq;
    throw new TakenOverError(`Another process writes to ${this.#subject}.`);
  }

  /** All is stored. @throws StoreError, TakenOverError */
  async finish(): Promise<void> {
    await this.#written;
  }

  /** Takes away what is stored. */
  async discard(): Promise<void> {
    await this.#written.catch(() => {});
    await eraseAll(this.#store, this.#subject).catch(() => {});
  }
}
