import type * as JetStream from '@nats-io/jetstream';
import type { Consumer, ConsumerMessages, JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type * as Kv from '@nats-io/kv';
import type * as Nats from '@nats-io/transport-node';
import type { NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/error-text.js';
import { OfferError } from './gateway-port.js';
import type { PoolName, QueueNames } from './names.js';

/** The libraries of the queue, which are loaded only where one is used. */
export interface NatsModules {
  nats: typeof Nats;
  jetstream: typeof JetStream;
  kv: typeof Kv;
}

/** How the stream is made, where it is not there yet. */
export interface StreamOptions {
  storage: 'file' | 'memory';
  replicas: number;
  /** Requests that may lie in the stream, of all gateways. */
  maxMessages: number;
}

/** Milliseconds within which a gateway must confirm to a worker that it may have a request. */
const ACK_WAIT_MS = 5_000;
/** Times that one attempt is handed out: its gateway begins others. */
const MAX_DELIVERIES = 5;
/** Milliseconds that a request lies in the stream at most: after that, no client waits for it. */
const MAX_AGE_MS = 24 * 3600 * 1000;
/** Milliseconds in which an attempt that is offered twice is recognised. */
const DUPLICATE_WINDOW_MS = 120_000;
/** Milliseconds without a worker after which the place of a pool in the stream is given up. */
const POOL_IDLE_MS = 3600 * 1000;
/** Most requests of a pool with its workers that were not acknowledged yet. */
const MAX_ACK_PENDING = 20_000;
const PUBLISH_TIMEOUT_MS = 5_000;
/**
 * Milliseconds after which a pull that brings nothing is repeated. Until then the server gives requests to a
 * worker that is stopped, or cut off.
 */
export const PULL_EXPIRES_MS = 3_000;

/** Codes of JetStream's API. Source: errors.json of nats-server. */
const STREAM_EXISTS = 10058;
const FULL_CODES: readonly number[] = [10077, 10023, 10047, 10054];
const MESSAGE_TOO_LARGE = 10054;

/**
 * The stream of requests that no worker has yet:
 *
 *   gateway --publish--> | PREFIX.work.MODEL.POOL ... | --pull, of a pool--> worker --ack--> gone
 *
 * It is a work queue: a request is in it once, goes to one worker, and is gone with its acknowledgement.
 */
export class WorkStream {
  readonly #nc: NatsConnection;
  readonly #modules: NatsModules;
  readonly #names: QueueNames;
  readonly #options: StreamOptions;
  readonly #client: JetStreamClient;
  #manager: JetStreamManager | null = null;
  /** The pool's place in the stream, of a worker. */
  #consumer: Promise<Consumer> | null = null;

  constructor(nc: NatsConnection, modules: NatsModules, names: QueueNames, options: StreamOptions) {
    this.#nc = nc;
    this.#modules = modules;
    this.#names = names;
    this.#options = options;
    this.#client = modules.jetstream.jetstream(nc, { timeout: PUBLISH_TIMEOUT_MS });
  }

  async #jsm(): Promise<JetStreamManager> {
    this.#manager ??= await this.#modules.jetstream.jetstreamManager(this.#nc, {
      timeout: PUBLISH_TIMEOUT_MS,
      checkAPI: false,
    });
    return this.#manager;
  }

  /** Makes the stream, unless it is there: another gateway or worker, or an administrator, may have made it. */
  async ensure(): Promise<void> {
    const { nanos } = this.#modules.nats;
    const manager = await this.#jsm();
    const { storage, replicas, maxMessages } = this.#options;
    try {
      await manager.streams.info(this.#names.stream);
      return;
    } catch (error) {
      if (!this.#isCode(error, (code, status) => status === 404 || code === 10059)) throw error;
    }
    try {
      await manager.streams.add({
        name: this.#names.stream,
        subjects: [this.#names.allWork],
        retention: 'workqueue',
        discard: 'new',
        storage,
        num_replicas: replicas,
        max_msgs: maxMessages,
        max_age: nanos(MAX_AGE_MS),
        duplicate_window: nanos(DUPLICATE_WINDOW_MS),
      });
    } catch (error) {
      // Another process was faster, perhaps with other options.
      if (!this.#isCode(error, (code) => code === STREAM_EXISTS)) throw error;
    }
  }

  async #openPool(pool: PoolName): Promise<Consumer> {
    await this.ensure();
    const { nanos } = this.#modules.nats;
    const manager = await this.#jsm();
    const info = await manager.consumers.add(this.#names.stream, {
      durable_name: this.#names.consumer(pool),
      filter_subject: this.#names.work(pool),
      ack_policy: 'explicit',
      ack_wait: nanos(ACK_WAIT_MS),
      max_deliver: MAX_DELIVERIES,
      max_ack_pending: MAX_ACK_PENDING,
      inactive_threshold: nanos(POOL_IDLE_MS),
    });
    return this.#client.consumers.getConsumerFromInfo(info);
  }

  #isCode(error: unknown, is: (code: number, status: number) => boolean): boolean {
    return error instanceof this.#modules.jetstream.JetStreamApiError && is(error.code, error.status);
  }

  /**
   * @param key what distinguishes this attempt from all others @returns its number in the stream @throws
   * OfferError
   */
  async publish(pool: PoolName, key: string, bytes: Uint8Array): Promise<number> {
    const limit = this.#nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
    // Headers count too.
    if (bytes.byteLength + 512 > limit) {
      throw new OfferError(
        'large',
        `The request takes ${bytes.byteLength} bytes, and the NATS server lets a message have ${limit} with its headers (max_payload).`,
      );
    }
    try {
      return await this.#publish(pool, key, bytes);
    } catch (error) {
      throw this.#offerError(error);
    }
  }

  async #publish(pool: PoolName, key: string, bytes: Uint8Array): Promise<number> {
    const subject = this.#names.work(pool);
    const options = { msgID: key, timeout: PUBLISH_TIMEOUT_MS };
    try {
      return (await this.#client.publish(subject, bytes, options)).seq;
    } catch (error) {
      if (this.#isCode(error, () => true)) throw error;
      // Perhaps nothing takes what is published to this subject: the stream is not there (any more).
      await this.ensure();
      return (await this.#client.publish(subject, bytes, options)).seq;
    }
  }

  #offerError(error: unknown): OfferError {
    const text = `The work queue does not take the request: ${messageOf(error)}.`;
    if (this.#isCode(error, (code) => code === MESSAGE_TOO_LARGE)) return new OfferError('large', text);
    if (this.#isCode(error, (code) => FULL_CODES.includes(code))) return new OfferError('full', text);
    return new OfferError('away', text);
  }

  /** Takes a request out again. Never rejects. */
  async withdraw(sequence: number): Promise<void> {
    try {
      const manager = await this.#jsm();
      await manager.streams.deleteMessage(this.#names.stream, sequence, false);
    } catch {
      // It is gone already, or the stream is.
    }
  }

  /** Messages of a pool, at most `max`, which come one by one. @throws where the stream cannot be reached */
  async pull(pool: PoolName, max: number): Promise<ConsumerMessages> {
    this.#consumer ??= this.#openPool(pool);
    try {
      const consumer = await this.#consumer;
      return await consumer.fetch({ max_messages: max, expires: PULL_EXPIRES_MS });
    } catch (error) {
      this.forgetPool();
      throw error;
    }
  }

  /** The pool's consumer in the stream may be gone: the next pull creates it again. */
  forgetPool(): void {
    this.#consumer = null;
  }
}
