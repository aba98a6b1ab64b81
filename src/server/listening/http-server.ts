import type { ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { createApp } from '../app/app.js';
import {
  type AnswerHttp,
  type Certificate,
  HttpSocket,
  type HttpSocketOptions,
} from '../sockets/http-socket.js';
import { answerAfterBody } from '../sockets/late-body.js';
import { PacedBegins } from '../sockets/paced-begins.js';
import { RequestTurns } from '../sockets/request-turns.js';
import { WebSockets } from '../sockets/web-sockets.js';
import { DEFAULT_MAX_BODY_BYTES } from '../web/bodies/read-json.js';
import { noteAnswer, notHttp, refuse } from '../web/raw-refusals.js';
import type { ServerState } from '../web/server-state.js';
import { upgradeOf } from '../web/upgrade.js';
import type { InferLane } from './infer-lane.js';

export interface HttpServerOptions extends HttpSocketOptions {
  /** Listens already; default: a socket is opened for these options. */
  socket?: HttpSocket | undefined;
  app: ReturnType<typeof createApp>;
  /** The short way of some requests; default: all go to the app. */
  lane?: InferLane | undefined;
  state: ServerState;
  /** Bytes of the longest message on a WebSocket; default: that of a body. */
  maxMessageBytes?: number | undefined;
  /** Milliseconds that a client may leave data unread before it is cut off. */
  stallLimitMs?: number | undefined;
  /** Called when a client is cut off. */
  onStall?: (() => void) | undefined;
  /** See ConnectionLimitOptions. */
  onFewFiles?: ((limit: number) => void) | undefined;
}

/** Listening socket of an app, with the exchanges on it. */
export class HttpServer {
  readonly #state: ServerState;
  readonly #stallLimitMs: number | undefined;
  readonly #onStall: (() => void) | undefined;
  /** Set once it listens. */
  #socket: HttpSocket | null = null;
  readonly #webSockets: WebSockets;
  #active = 0;
  #onIdle: (() => void) | null = null;

  private constructor(options: HttpServerOptions) {
    const { state, stallLimitMs, onStall, maxMessageBytes = DEFAULT_MAX_BODY_BYTES } = options;
    this.#state = state;
    this.#stallLimitMs = stallLimitMs;
    this.#onStall = onStall;
    this.#webSockets = new WebSockets({ maxMessageBytes, beginWork: () => this.#beginWork() });
  }

  /** Follows an exchange until its last byte is out, or its client has left. */
  #follow(outgoing: ServerResponse): void {
    const endWork = this.#beginWork();
    if (this.#stallLimitMs !== undefined) cutWhereStalled(outgoing, this.#stallLimitMs, this.#onStall);
    outgoing.once('close', endWork);
  }

  #beginWork(): () => void {
    this.#active++;
    return () => {
      this.#active--;
      if (this.#active === 0) this.#onIdle?.();
    };
  }

  /** Starts to listen. @throws ListenError where the address cannot be listened on. */
  static async listen(options: HttpServerOptions): Promise<HttpServer> {
    const { app, lane, socket: early } = options;
    const running = new HttpServer(options);
    const listener = getRequestListener(app.fetch, {
      overrideGlobalObjects: false,
      // This is the host of an HTTP/1.0 request that names none.
      hostname: 'localhost',
      // A request that the library rejects, such as one with a malformed address, never reaches the app.
      errorHandler: () => notHttp('the address or a header is malformed').response(),
    });
    const begins = new PacedBegins((incoming, outgoing) => {
      const refusal = running.#socket!.refusalOf(incoming);
      if (refusal !== null) {
        refuse(outgoing, refusal);
        return;
      }
      answerAfterBody(incoming, outgoing);
      if (lane?.take(incoming, outgoing)) return;
      const answered = listener(incoming, outgoing);
      const upgrade = upgradeOf(incoming);
      if (upgrade !== undefined) void answered.then(() => running.#webSockets.open(upgrade));
    });
    const turns = new RequestTurns((incoming, outgoing) => {
      // One that waits for its turn is under way too.
      running.#follow(outgoing);
      noteAnswer(outgoing);
      begins.take(incoming, outgoing);
    });
    const answer: AnswerHttp = (incoming, outgoing) => turns.take(incoming, outgoing);
    running.#socket = early ?? (await HttpSocket.listen(options, answer));
    running.#socket.answerWith(answer);
    running.#socket.onFewFiles = options.onFewFiles;
    return running;
  }

  /** See HttpSocket.certify. */
  certify(tls: Certificate): void {
    this.#socket!.certify(tls);
  }

  get port(): number {
    return this.#socket!.port;
  }

  get url(): string {
    return this.#socket!.url;
  }

  /**
   * Lets the present answers end, for at most `limitMs`. The socket stays open meanwhile, so that /health can say 503
   * and new requests get a proper refusal.
   * @returns true where all of them ended in time.
   */
  async drain(limitMs: number): Promise<boolean> {
    this.#state.drain(limitMs);
    if (this.#active > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limitMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#active === 0;
  }

  /** Cuts the remaining connections. */
  async close(): Promise<void> {
    await Promise.all([this.#webSockets.close(), this.#socket!.close()]);
  }
}

/**
 * Cuts the connection of a client that has left data unread for `limitMs`. The event stream holds data back for a slow
 * reader, but data that has left the stream waits here. A client that reads slowly is not cut, nor one that waits for
 * an answer.
 */
function cutWhereStalled(outgoing: ServerResponse, limitMs: number, onStall: (() => void) | undefined): void {
  outgoing.setTimeout(limitMs, () => {
    // A stream that is cut off is counted there.
    if (outgoing.destroyed || (outgoing.socket?.writableLength ?? 0) === 0) return;
    onStall?.();
    outgoing.destroy();
  });
}
