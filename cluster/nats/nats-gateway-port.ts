import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/error-text.js';
import type { DirectAnswer } from '../routing/model-routing.js';
import type { Beat } from './beat.js';
import type { CacheAsk, CacheChange, CachePart } from './cache-messages.js';
import type { GatewayListener, GatewayPort, Offer, RoutingPort } from './gateway-port.js';
import { type LoadingNotice, readLoading } from './loading-notice.js';
import {
  type BlocksAnswer,
  packMessage,
  type StopMessage,
  unpackMessage,
  type WorkItem,
} from './messages.js';
import type { PoolName, QueueNames } from './names.js';
import { PacedWarnings } from './paced-warnings.js';
import type { WorkStream } from './work-stream.js';

/** Milliseconds that a worker has to say that it is there. */
const PROBE_MS = 1_000;
/** Milliseconds that a worker has to say whether it takes a request: then others may have it. */
const DIRECT_MS = 400;
/** Milliseconds that a worker has to send a part of what its cache has. */
const CACHE_MS = 3_000;
/**
 * Says that workers need not send their cards: the gateway asks one worker of each pool for a card that it
 * does not know.
 */
const BARE = 'bare';
/** Bytes of a message that its content does not count. */
const OVERHEAD_BYTES = 512;
/** Milliseconds that a worker has to send a part of a file. */
const FILE_MS = 10_000;

export interface NatsGatewayOptions {
  nc: NatsConnection;
  stream: WorkStream;
  names: QueueNames;
  /** Id of the gateway. */
  id: string;
  /** Listen to what workers report about their caches; default false. */
  hearsCaches?: boolean;
  /** Called with what workers report while they load their model; absent: it does not listen to them. */
  onLoading?: (notice: LoadingNotice) => void;
  onWarning: (message: string) => void;
}

/** A gateway's end of the queue, over NATS. */
export class NatsGatewayPort implements GatewayPort, RoutingPort {
  readonly #options: NatsGatewayOptions;
  readonly #warnings: PacedWarnings;

  constructor(options: NatsGatewayOptions) {
    this.#options = options;
    this.#warnings = new PacedWarnings(options.onWarning);
  }

  /** Starts to pass what comes to the listener. */
  listen(listener: GatewayListener): void {
    const { nc, names, id, hearsCaches = false, onLoading } = this.#options;
    this.#hear(names.gateway(id), (message) => this.#onMessage(message, listener));
    this.#hear(names.beat, ({ data }) => listener.onBeat(unpackMessage(data, 'beat')));
    if (hearsCaches) this.#hear(names.cache('*'), (message) => this.#onCache(message, listener));
    if (onLoading !== undefined) this.#hear(names.loading, ({ data }) => onLoading(readLoading(data)));
    void this.#follow(listener);
    nc.publish(names.hello, BARE);
  }

  #hear(subject: string, read: (message: Msg) => void): void {
    const { nc, onWarning } = this.#options;
    nc.subscribe(subject, {
      callback: (error, message) => {
        // The server refuses the subscription.
        if (error !== null) {
          onWarning(`The gateway receives nothing from ${subject}: ${messageOf(error)}`);
          return;
        }
        try {
          read(message);
        } catch (thrown) {
          this.#warnings.tell(`A message to ${message.subject} is dropped: ${messageOf(thrown)}`);
        }
      },
    });
  }

  #onMessage(message: Msg, listener: GatewayListener): void {
    const told = unpackMessage(message.data, 'frames', 'hold', 'picture');
    if (told.kind === 'frames') listener.onFrames(told);
    else if (told.kind === 'hold') message.respond(packMessage(listener.onHold(told)));
    else void this.#sendPicture(message, listener.onPicture(told, this.#limit - OVERHEAD_BYTES));
  }

  /** The worker asks again for what does not come. */
  async #sendPicture(message: Msg, part: Promise<BlocksAnswer>): Promise<void> {
    try {
      message.respond(packMessage(await part));
    } catch (error) {
      this.#warnings.tell(`A part of a picture is not sent: ${messageOf(error)}`);
    }
  }

  #onCache({ subject, data }: Msg, listener: GatewayListener): void {
    const change = unpackMessage(data, 'cacheChange');
    if (subject === this.#options.names.cache(change.worker)) listener.onCache(change);
  }

  async #follow(listener: GatewayListener): Promise<void> {
    const { nc, names } = this.#options;
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') listener.onDisconnect();
      if (type !== 'reconnect') continue;
      listener.onReconnect();
      nc.publish(names.hello, BARE);
    }
  }

  /** Bytes of a message at most. */
  get #limit(): number {
    return this.#options.nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  async offer(pool: PoolName, item: WorkItem): Promise<Offer> {
    const { stream } = this.#options;
    const sequence = await stream.publish(pool, `${item.id}/${item.attempt}`, packMessage(item));
    return { withdraw: () => void stream.withdraw(sequence) };
  }

  async direct(worker: string, item: WorkItem): Promise<DirectAnswer> {
    const { nc, names } = this.#options;
    const bytes = packMessage(item);
    if (nc.isClosed() || bytes.byteLength + OVERHEAD_BYTES > this.#limit) return 'unsent';
    try {
      const { data } = await nc.request(names.worker(worker), bytes, { timeout: DIRECT_MS });
      return unpackMessage(data, 'taken').isTaken ? 'taken' : 'full';
    } catch (error) {
      return isNobody(error) ? 'nobody' : 'silent';
    }
  }

  async askCache(worker: string, message: CacheAsk): Promise<CacheChange | CachePart | null> {
    const { nc, names } = this.#options;
    try {
      const { data } = await nc.request(names.worker(worker), packMessage(message), { timeout: CACHE_MS });
      return unpackMessage(data, 'cacheChange', 'cachePart');
    } catch {
      return null;
    }
  }

  stop(worker: string, message: StopMessage): void {
    const { nc, names } = this.#options;
    if (!nc.isClosed()) nc.publish(names.worker(worker), packMessage(message));
  }

  async probe(worker: string): Promise<Beat | 'nobody' | null> {
    const { nc, names } = this.#options;
    try {
      const answer = await nc.request(names.worker(worker), packMessage({ kind: 'probe' }), {
        timeout: PROBE_MS,
      });
      return unpackMessage(answer.data, 'beat');
    } catch (error) {
      return isNobody(error) ? 'nobody' : null;
    }
  }

  /** A part of a worker's file; empty after its end. @throws where the worker does not answer */
  async readFile(worker: string, pool: string, name: string, offset: number): Promise<Uint8Array> {
    const { nc, names } = this.#options;
    const message = packMessage({ kind: 'file', pool, name, offset });
    return (await nc.request(names.worker(worker), message, { timeout: FILE_MS })).data;
  }
}

/**
 * True for an error of the NATS client that says a subject has no subscriber; false where an answer came too late. The
 * client's classes are not loaded here, so the error is asked.
 */
function isNobody(error: unknown): boolean {
  const { isNoResponders, cause } = (error ?? {}) as { isNoResponders?: () => boolean; cause?: unknown };
  if (typeof isNoResponders === 'function' && isNoResponders.call(error)) return true;
  return cause instanceof Error && isNobody(cause);
}
