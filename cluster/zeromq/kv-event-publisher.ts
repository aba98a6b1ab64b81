import { encode } from '@msgpack/msgpack';
import { ClientKeys } from './client-keys.js';
import type { CurveKeys } from './curve.js';
import { type Endpoint, EndpointError } from './endpoint.js';
import { batchOf, type WireEvent, type WireFormat } from './kv-event-wire.js';
import { type PublishedBatch, ReplayBuffer } from './replay-buffer.js';
import type { CurveOptions, ReceivingSocket, SendingSocket, ZeroMq } from './zeromq.js';

export interface KvEventPublisherOptions {
  endpoint: Endpoint;
  /** Where readers ask for batches again; null: nowhere. */
  replayEndpoint: Endpoint | null;
  /** First frame of each message, by which readers subscribe; may be empty. */
  topic: string;
  format: WireFormat;
  /** Most batches that can be asked for again. */
  bufferSteps: number;
  /** Keys of this side; null: neither encrypted nor authenticated. */
  keys: CurveKeys | null;
  /**
   * Public keys of the other side: of the clients that may connect, none if all may who know this side's key; or of the server that
   * is connected to, exactly one.
   */
  peerKeys: readonly string[];
  onError: (error: Error) => void;
}

/** Bytes of batches that are kept to be asked for again. */
const MAX_BUFFERED_BYTES = 64 * 2 ** 20;
/** Messages that wait for a slow reader; more are lost to it, as vLLM's default has it. */
const HIGH_WATER_MARK = 100_000;
/** Batches that wait for the socket, which takes them at once unless the machine is overwhelmed. */
const MAX_PENDING = 10_000;
/** Messages of a replay that wait for its reader. */
const REPLAY_HIGH_WATER_MARK = 1_000;
/** Milliseconds in which a reader has to take some of a replay, and all of it. */
const REPLAY_STALL_MS = 1_000;
const REPLAY_LIMIT_MS = 30_000;
/** Bytes of what readers send: a subscription, or a request to replay. */
const MAX_READ_BYTES = 1_024;
/** Number that ends a replay: -1 in 8 bytes. */
const END_OF_REPLAY = Buffer.alloc(8, 0xff);

/**
 * Publishes a cache's events as vLLM does (`ZmqEventPublisher`), so that its readers need not know the difference:
 *
 *   PUB     [topic, number of the batch in 8 bytes, big-endian, msgpack of [time, events, rank]]
 *   ROUTER  asked [identity, "", first number in 8 bytes]: answers [identity, "", number, msgpack] for each batch that is
 *           kept from there on, and [identity, "", -1, ""]
 *
 * A reader sees by the numbers that it has lost a batch, and asks for it.
 */
export class KvEventPublisher {
  /** Address of the events, with the port that was bound. */
  readonly address: string;
  readonly replayAddress: string | null;
  readonly #topic: string;
  readonly #format: WireFormat;
  readonly #pub: SendingSocket;
  readonly #router: (SendingSocket & ReceivingSocket) | null;
  readonly #clients: ClientKeys | null;
  readonly #buffer: ReplayBuffer;
  readonly #onError: (error: Error) => void;
  readonly #pending: PublishedBatch[] = [];
  #nextSequence = 0;
  #isSending = false;
  #isClosed = false;

  private constructor(sockets: Sockets, { topic, format, bufferSteps, onError }: KvEventPublisherOptions) {
    this.#topic = topic;
    this.#format = format;
    this.#pub = sockets.pub;
    this.#router = sockets.router;
    this.#clients = sockets.clients;
    this.address = sockets.pub.lastEndpoint ?? '';
    this.replayAddress = sockets.router?.lastEndpoint ?? null;
    this.#buffer = new ReplayBuffer(bufferSteps, MAX_BUFFERED_BYTES);
    this.#onError = onError;
    if (this.#router !== null) void this.#serveReplays(this.#router);
  }

  /** @throws EndpointError where an address cannot be used */
  static async open(zmq: ZeroMq, options: KvEventPublisherOptions): Promise<KvEventPublisher> {
    return new KvEventPublisher(await openSockets(zmq, options), options);
  }

  /** Sends one batch. @param events none: nothing is sent */
  publish(events: readonly WireEvent[], nowMs = Date.now()): void {
    if (events.length === 0 || this.#isClosed) return;
    const batch = { sequence: this.#nextSequence, payload: encode(batchOf(events, this.#format, nowMs)) };
    this.#nextSequence += 1;
    this.#buffer.add(batch);
    // What does not fit is a gap in the numbers, and can be asked for again.
    if (this.#pending.length < MAX_PENDING) this.#pending.push(batch);
    if (!this.#isSending) void this.#send();
  }

  close(): void {
    this.#isClosed = true;
    this.#pub.close();
    this.#router?.close();
    this.#clients?.close();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    try {
      for (let batch = this.#pending.shift(); batch !== undefined; batch = this.#pending.shift()) {
        await this.#pub.send([this.#topic, sequenceBytes(batch.sequence), batch.payload]);
      }
    } catch (error) {
      this.#report(error);
    } finally {
      this.#isSending = false;
    }
  }

  async #serveReplays(router: SendingSocket & ReceivingSocket): Promise<void> {
    const requests = { [Symbol.asyncIterator]: () => router[Symbol.asyncIterator]() };
    try {
      for await (const [identity, delimiter, first, ...more] of requests) {
        const isAsked = delimiter?.length === 0 && first?.length === 8 && more.length === 0;
        if (identity === undefined || !isAsked) continue;
        await this.#replay(router, identity, Number(Buffer.from(first).readBigUInt64BE()));
      }
    } catch (error) {
      this.#report(error);
    }
  }

  /** One reader after the other. A reader that has gone, or does not read, is left. */
  async #replay(router: SendingSocket, identity: Uint8Array, first: number): Promise<void> {
    const untilMs = performance.now() + REPLAY_LIMIT_MS;
    try {
      for (const { sequence, payload } of this.#buffer.from(first)) {
        if (performance.now() > untilMs) return;
        await router.send([identity, '', sequenceBytes(sequence), payload]);
      }
      await router.send([identity, '', END_OF_REPLAY, '']);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EAGAIN' && code !== 'EHOSTUNREACH') throw error;
    }
  }

  #report(error: unknown): void {
    if (!this.#isClosed) this.#onError(error instanceof Error ? error : new Error(String(error)));
  }
}

interface Sockets {
  pub: SendingSocket;
  router: (SendingSocket & ReceivingSocket) | null;
  clients: ClientKeys | null;
}

async function openSockets(zmq: ZeroMq, options: KvEventPublisherOptions): Promise<Sockets> {
  const { endpoint, replayEndpoint, keys, peerKeys } = options;
  // Who may connect is a matter of the context, so each publisher has its own.
  const context = new zmq.Context();
  const opened: { close(): void }[] = [];
  const opening = <S extends { close(): void }>(socket: S): S => {
    opened.push(socket);
    return socket;
  };
  try {
    const isServer = endpoint.isBound || replayEndpoint !== null;
    const asksKeys = keys !== null && isServer && peerKeys.length > 0;
    const clients = asksKeys ? opening(await ClientKeys.open(zmq, context, new Set(peerKeys))) : null;
    const common = { context, linger: 0, maxMessageSize: MAX_READ_BYTES };
    const optionsAt = ({ address, isBound }: Endpoint) => ({
      ...common,
      ipv6: address.includes('['),
      ...curveOptions(keys, isBound, peerKeys),
    });
    const pub = opening(new zmq.Publisher({ ...optionsAt(endpoint), sendHighWaterMark: HIGH_WATER_MARK }));
    await attach(pub, endpoint);
    if (replayEndpoint === null) return { pub, router: null, clients };
    const router = opening(
      new zmq.Router({
        ...optionsAt(replayEndpoint),
        mandatory: true,
        sendHighWaterMark: REPLAY_HIGH_WATER_MARK,
        sendTimeout: REPLAY_STALL_MS,
      }),
    );
    await attach(router, replayEndpoint);
    return { pub, router, clients };
  } catch (error) {
    for (const socket of opened) socket.close();
    throw error;
  }
}

function curveOptions(keys: CurveKeys | null, isServer: boolean, peerKeys: readonly string[]): CurveOptions {
  if (keys === null) return {};
  const { publicKey, secretKey } = keys;
  const own = { curvePublicKey: publicKey, curveSecretKey: secretKey };
  return isServer ? { ...own, curveServer: true } : { ...own, curveServerKey: peerKeys[0]! };
}

async function attach(socket: SendingSocket, { address, isBound }: Endpoint): Promise<void> {
  try {
    if (isBound) await socket.bind(address);
    else socket.connect(address);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EndpointError(
      `ZeroMQ cannot ${isBound ? 'listen at' : 'connect to'} ${address}: ${why.charAt(0).toLowerCase()}${why.slice(1)}.`,
    );
  }
}

function sequenceBytes(sequence: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(sequence));
  return bytes;
}
