import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/error-text.js';
import { failure } from '../../callbacks/request-failure.js';
import type { Beat } from './beat.js';
import type { CacheChange } from './cache-messages.js';
import {
  type BlocksAnswer,
  type BlocksMessage,
  type FileMessage,
  type FramesMessage,
  type HoldAnswer,
  type HoldMessage,
  type PictureMessage,
  packMessage,
  type QueueMessage,
  senderOf,
  type ToWorker,
  unpackMessage,
  type WorkItem,
} from './messages.js';
import type { PoolName, QueueNames } from './names.js';
import { PacedWarnings } from './paced-warnings.js';
import { PULL_EXPIRES_MS, type WorkStream } from './work-stream.js';
import type { WorkerListener, WorkerPort } from './worker-port.js';

/** Milliseconds that a gateway has to say what it waits for. */
const HOLD_MS = 3_000;
/** Milliseconds that a pull lasts at most: more than the server gives it. */
const PULL_LIMIT_MS = 2 * PULL_EXPIRES_MS;
/** Milliseconds after a pull that failed. */
const RETRY_MS = 250;
/** Milliseconds after which others get what a worker does not take after all. */
const GIVE_BACK_MS = 100;
/** Milliseconds that another worker, or a gateway, has to send a part of what it keeps. */
const PART_MS = 3_000;
/** Bytes of a message that its frames do not count. */
const OVERHEAD_BYTES = 4096;

export interface NatsWorkerOptions {
  nc: NatsConnection;
  stream: WorkStream;
  names: QueueNames;
  pool: PoolName;
  /** Id of the worker. */
  id: string;
  /** Its present beat. @param isWhole with the card of its model */
  beat: (isWhole: boolean) => Beat;
  /** A part of one of its files, of at most `most` bytes; null: there is no such file. */
  readFile: (message: FileMessage, most: number) => Promise<Uint8Array | null>;
  onWarning: (message: string) => void;
}

/** A worker's end of the queue, over NATS. */
export class NatsWorkerPort implements WorkerPort {
  readonly #options: NatsWorkerOptions;
  readonly #warnings: PacedWarnings;
  readonly #pulls = new Set<ConsumerMessages>();
  #listener: WorkerListener | null = null;
  #isStopped = false;
  #hasWarned = false;

  constructor(options: NatsWorkerOptions) {
    this.#options = options;
    this.#warnings = new PacedWarnings(options.onWarning);
  }

  /** Starts to pass what comes to the listener, and to report the worker to gateways. */
  listen(listener: WorkerListener): void {
    this.#listener = listener;
    const { nc, names, id } = this.#options;
    nc.subscribe(names.worker(id), {
      callback: (error, message) => {
        if (error === null) void this.#answer(message.data, (bytes) => message.respond(bytes));
      },
    });
    // A gateway of an older version, which says no word, cannot ask for the card alone.
    nc.subscribe(names.hello, {
      callback: (error, message) => {
        if (error === null) this.tell(message.data.length === 0);
      },
    });
    void this.#follow();
    this.tell(true);
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#options.nc.status()) {
      if (type !== 'reconnect') continue;
      // What was asked of a server that was away is asked again.
      this.#closePulls();
      this.#options.stream.forgetPool();
      this.tell(true);
    }
  }

  async #answer(bytes: Uint8Array, respond: (bytes: Uint8Array) => void): Promise<void> {
    try {
      const message: ToWorker = unpackMessage(bytes, 'stop', 'probe', 'file', 'blocks', 'work', 'cacheAsk');
      const listener = this.#listener!;
      if (message.kind === 'probe') respond(packMessage(this.#options.beat(true)));
      else if (message.kind === 'file') {
        respond((await this.#options.readFile(message, this.maxBytes)) ?? new Uint8Array(0));
      } else if (message.kind === 'stop') listener.onStop(message);
      else if (message.kind === 'work') {
        respond(packMessage({ kind: 'taken', isTaken: !this.#isStopped && listener.onOffer(message) }));
      } else if (message.kind === 'cacheAsk') {
        const answer = listener.onCacheAsk(message);
        if (answer !== null) respond(packMessage(answer));
      } else respond(packMessage(listener.onBlocks(message)));
    } catch (error) {
      this.#warnings.tell(`A message to this worker is dropped: ${messageOf(error)}`);
    }
  }

  get maxBytes(): number {
    return (this.#options.nc.info?.max_payload ?? 1024 * 1024) - OVERHEAD_BYTES;
  }

  async pull(max: number): Promise<number> {
    let numMissing = max;
    try {
      const messages = await this.#options.stream.pull(this.#options.pool, max);
      if (this.#isStopped) void messages.close();
      this.#pulls.add(messages);
      // The client's own end of a pull may be lost with a connection.
      const timer = setTimeout(() => void messages.close(), PULL_LIMIT_MS);
      try {
        for await (const message of messages) {
          if (this.#deliver(message)) numMissing--;
        }
      } finally {
        clearTimeout(timer);
        this.#pulls.delete(messages);
      }
      this.#hasWarned = false;
    } catch (error) {
      await this.#afterFailure(error);
    }
    return numMissing;
  }

  async #afterFailure(error: unknown): Promise<void> {
    const { nc, stream, onWarning } = this.#options;
    stream.forgetPool();
    if (this.#isStopped || nc.isClosed()) return;
    if (!this.#hasWarned) onWarning(`The work queue gives no requests: ${messageOf(error)}; trying again.`);
    this.#hasWarned = true;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }

  /** False: the message is no request. */
  #deliver(message: JsMsg): boolean {
    let item: WorkItem;
    try {
      item = unpackMessage(message.data, 'work');
    } catch (error) {
      // No other worker could read it either.
      this.#tellStream(() => message.term());
      this.#refuse(message.data, messageOf(error));
      return false;
    }
    const giveBack = () => this.#tellStream(() => message.nak(GIVE_BACK_MS));
    const ack = () => this.#tellStream(() => message.ack());
    if (this.#isStopped) giveBack();
    else this.#listener!.onWork({ item, isRedelivered: message.redelivered, ack, giveBack });
    return true;
  }

  /** Notifies the gateway of a request that cannot be read, which would wait for it otherwise. */
  #refuse(bytes: Uint8Array, why: string): void {
    this.#warnings.tell(`A request of the work queue is dropped: ${why}`);
    const sender = senderOf(bytes);
    if (sender === null) return;
    const { gateway, ...lease } = sender;
    const worker = this.#options.id;
    const refused = { ...lease, failure: failure('invalid', why) };
    try {
      this.send(gateway, { kind: 'frames', worker, frames: [], failures: [refused] });
    } catch {
      // Its gateway has a name that no gateway has.
    }
  }

  /** If the connection is closed for good, the stream is not notified and finds out after a while. */
  #tellStream(tell: () => void): void {
    if (!this.#options.nc.isClosed()) tell();
  }

  stopPulling(): void {
    this.#isStopped = true;
    this.#closePulls();
  }

  #closePulls(): void {
    for (const messages of this.#pulls) void messages.close();
  }

  send(gateway: string, message: FramesMessage): void {
    const { nc, names } = this.#options;
    nc.publish(names.gateway(gateway), packMessage(message));
  }

  async hold(gateway: string, message: HoldMessage): Promise<HoldAnswer | null> {
    const { nc, names } = this.#options;
    try {
      const answer = await nc.request(names.gateway(gateway), packMessage(message), { timeout: HOLD_MS });
      return unpackMessage(answer.data, 'held');
    } catch {
      // There is no receiver, or the connection is away: the caller sees for how long.
      return null;
    }
  }

  fetchBlocks(worker: string, message: BlocksMessage): Promise<BlocksAnswer | null> {
    return this.#fetch(this.#options.names.worker(worker), message);
  }

  fetchPicture(gateway: string, message: PictureMessage): Promise<BlocksAnswer | null> {
    return this.#fetch(this.#options.names.gateway(gateway), message);
  }

  async #fetch(subject: string, message: QueueMessage): Promise<BlocksAnswer | null> {
    try {
      const answer = await this.#options.nc.request(subject, packMessage(message), { timeout: PART_MS });
      return unpackMessage(answer.data, 'blocksPart');
    } catch {
      // Who has it is gone, or silent, or what it said cannot be read: blocks are computed here, and pictures asked for again.
      return null;
    }
  }

  tell(isWhole: boolean): void {
    const { nc, names, beat } = this.#options;
    if (!nc.isClosed()) nc.publish(names.beat, packMessage(beat(isWhole)));
  }

  tellCache(change: CacheChange): void {
    const { nc, names, id } = this.#options;
    // Who leaves is chosen no more.
    if (!nc.isClosed() && !nc.isDraining()) nc.publish(names.cache(id), packMessage(change));
  }
}
