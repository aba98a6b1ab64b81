import { setTimeout as delay } from 'node:timers/promises';
import type { JetStreamClient, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/error-text.js';
import { StoreError } from '../../base/store-errors.js';
import type { NatsModules } from './work-stream.js';

/** How what is stored is kept, where it is not there yet. */
export interface JetStoreOptions {
  storage: 'file' | 'memory';
  replicas: number;
  /** Most bytes of all of it; the server sets them aside. */
  maxBytes: number;
  /** Milliseconds after which the NATS server drops what was not written again, by its own clock. */
  maxAgeMs: number;
}

/** Milliseconds that one exchange with the NATS server may take, and times that it is tried. */
export const STORE_TIMEOUT_MS = 2_000;
export const STORE_TRIES = 3;
/** Milliseconds between two tries of what a server said that may not know all yet. */
const CATCH_UP_MS = 250;
/** Bytes of the headers of a message, and of what else counts in max_payload. */
const HEADER_BYTES = 1024;

/** Codes of JetStream's API. Source: errors.json of nats-server. */
const STREAM_EXISTS = 10058;
const STREAM_NOT_FOUND = 10059;
const WRONG_LAST_SEQUENCE = 10071;
const SEQUENCE_NOT_FOUND = 10043;
const DELETE_FAILED = 10057;
const FULL_CODES: readonly number[] = [10023, 10047, 10054, 10077];

/** One stream of JetStream in which something is stored, and the errors of it. */
export class JetStore {
  readonly nc: NatsConnection;
  readonly modules: NatsModules;
  readonly client: JetStreamClient;
  /** Name of the stream. */
  readonly stream: string;
  readonly #replicas: number;
  readonly #config: () => Partial<StreamConfig>;
  #manager: JetStreamManager | null = null;

  /** @param config the stream's, but for its name and `options` */
  constructor(
    nc: NatsConnection,
    modules: NatsModules,
    stream: string,
    options: JetStoreOptions,
    config: Partial<StreamConfig>,
  ) {
    this.nc = nc;
    this.modules = modules;
    this.stream = stream;
    this.client = modules.jetstream.jetstream(nc, { timeout: STORE_TIMEOUT_MS });
    const { storage, replicas: num_replicas, maxBytes: max_bytes, maxAgeMs } = options;
    this.#replicas = num_replicas;
    const max_age = modules.nats.nanos(maxAgeMs);
    this.#config = () => ({ ...config, storage, num_replicas, max_bytes, max_age, discard: 'new' });
  }

  /** Most bytes of one message. */
  get maxMessageBytes(): number {
    return (this.nc.info?.max_payload ?? 2 ** 20) - HEADER_BYTES;
  }

  async manager(): Promise<JetStreamManager> {
    this.#manager ??= await this.modules.jetstream.jetstreamManager(this.nc, {
      timeout: STORE_TIMEOUT_MS,
      checkAPI: false,
    });
    return this.#manager;
  }

  /** Makes the stream, unless it is there: another process, or an administrator, may have made it. @throws StoreError */
  async ensure(): Promise<void> {
    try {
      const manager = await this.manager();
      if (await this.#isThere(manager)) return;
      await manager.streams.add({ ...this.#config(), name: this.stream });
    } catch (error) {
      if (!this.isCode(error, STREAM_EXISTS)) throw this.errorOf(error);
    }
  }

  /** False where there is no stream for sure: a server that leads a cluster since a moment ago may not know yet of all that it has. */
  async #isThere(manager: JetStreamManager): Promise<boolean> {
    for (let tried = 1; ; tried++) {
      try {
        await manager.streams.info(this.stream);
        return true;
      } catch (error) {
        if (!this.isCode(error, STREAM_NOT_FOUND)) throw error;
        if (!this.#hasReplicas || tried === STORE_TRIES) return false;
        await delay(CATCH_UP_MS);
      }
    }
  }

  /** Does something with the stream, which is made where it is gone: its server may have lost all. @throws StoreError */
  async with<T>(work: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    try {
      return await work(await this.manager());
    } catch (error) {
      // Where the stream is gone, what is published to it has no taker, and the API does not know its name.
      const isGone = this.isCode(error, STREAM_NOT_FOUND) || this.#hasNoTaker(error);
      if (!isGone) throw this.errorOf(error);
    }
    await this.ensure();
    try {
      return await work(await this.manager());
    } catch (error) {
      throw this.errorOf(error);
    }
  }

  #hasNoTaker(error: unknown): boolean {
    const { NoRespondersError } = this.modules.nats.errors;
    for (let one = error; one instanceof Error; one = one.cause)
      if (one instanceof NoRespondersError) return true;
    return false;
  }

  /** The same for what may be done twice: where no answer comes, as of a server that is started again, it is. @throws StoreError */
  async ask<T>(work: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried++) {
      try {
        return await this.with(work);
      } catch (error) {
        if (!(error instanceof StoreError) || error.kind !== 'away' || tried === STORE_TRIES) throw error;
      }
    }
  }

  /**
   * The same for a read that may find nothing: a server that has just become the stream's leader may still have to apply what the others
   * have stored, so it is read again when that is done. @throws StoreError
   */
  async find<T>(read: (manager: JetStreamManager) => Promise<T | null>): Promise<T | null> {
    const found = await this.ask(read);
    if (found !== null || !this.#hasReplicas) return found;
    await this.#catchUp();
    return this.ask(read);
  }

  /**
   * Done when the stream's leader has applied all that was stored before: a removal goes through the log of the stream as a message does,
   * and is answered when it is applied. No message has the number 0. @throws StoreError
   */
  async #catchUp(): Promise<void> {
    await this.ask(async (manager) => {
      try {
        await manager.streams.deleteMessage(this.stream, 0, false);
      } catch (error) {
        if (!this.isCode(error, SEQUENCE_NOT_FOUND, DELETE_FAILED)) throw error;
      }
    });
  }

  get #hasReplicas(): boolean {
    return this.#replicas > 1 || this.nc.info?.cluster !== undefined;
  }

  /**
   * Takes a message away. Never by a purge of its subject: where nats-server before 2.9.18 is started again in a cluster, it makes of
   * that a purge of all that the stream had (issue 4196 of nats-server).
   * @returns false where it is not there @throws StoreError
   */
  async erase(sequence: number): Promise<boolean> {
    for (let tried = 1; ; tried++) {
      try {
        if (await this.with((manager) => this.#erase(manager, sequence))) return true;
        // An earlier try has come, whose answer was lost.
        return tried > 1;
      } catch (error) {
        if (!(error instanceof StoreError) || error.kind !== 'away' || tried === STORE_TRIES) throw error;
      }
    }
  }

  async #erase(manager: JetStreamManager, sequence: number): Promise<boolean> {
    try {
      return await manager.streams.deleteMessage(this.stream, sequence, false);
    } catch (error) {
      if (this.isCode(error, SEQUENCE_NOT_FOUND)) return false;
      // Of a message that went with all around it the server says the same as of one that it cannot take away.
      if (!this.isCode(error, DELETE_FAILED)) throw error;
      if ((await manager.streams.getMessage(this.stream, { seq: sequence })) === null) return false;
      throw error;
    }
  }

  /** Does something again as long as it is away, for a bounded time. @throws StoreError */
  async wait<T>(work: () => Promise<T>, limitMs: number): Promise<T> {
    const endMs = performance.now() + limitMs;
    for (;;) {
      try {
        return await this.ask(work);
      } catch (error) {
        if (!(error instanceof StoreError) || error.kind !== 'away' || performance.now() > endMs) throw error;
        await delay(CATCH_UP_MS);
      }
    }
  }

  /** The error of what cannot be read or written now. */
  away(why: string, cause?: unknown): StoreError {
    const text = `The NATS server, which keeps what clients store, does not answer for ${this.stream}: ${why}.`;
    return new StoreError('away', text, { cause });
  }

  /** True where another process has written meanwhile. */
  isBehind(error: unknown): boolean {
    return this.isCode(error, WRONG_LAST_SEQUENCE);
  }

  isCode(error: unknown, ...codes: readonly number[]): boolean {
    return error instanceof this.modules.jetstream.JetStreamApiError && codes.includes(error.code);
  }

  /** The error as callers know it; an error that says who was first is kept. */
  errorOf(error: unknown): unknown {
    if (error instanceof StoreError || this.isBehind(error)) return error;
    const why = messageOf(error);
    if (this.isCode(error, ...FULL_CODES)) {
      const text = `The NATS server has no room in ${this.stream}: ${why}.`;
      return new StoreError('full', text, { cause: error });
    }
    return this.away(why, error);
  }
}
