import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { onAbort } from '../../../../../../base/on-abort.js';
import type {
  InferListener,
  InferRequest,
  InferResponse,
} from '../../../../../../callbacks/infer/infer-types.js';
import type { AppOptions } from '../../../../../../src/server/app/app.js';
import { HttpServer, type HttpServerOptions } from '../../../../../../src/server/listening/http-server.js';
import { MemoryLedger } from '../../../../../../src/server/web/memory/held-memory.js';
import type { ServerLog } from '../../../../../../src/server/web/server-log.js';
import { asInferError } from '../../../../../../src/serving/infer-failure.js';
import { FakeModel, fakeConfig } from '../../support/fake-models.js';
import { fakePlatform } from '../../support/fake-platform.js';

export const MAX_BYTES = 2 ** 20;

/** A request that a model has, to be answered by the test. */
export interface Taken {
  request: InferRequest;
  on: InferListener;
}

/** A model that answers when the test says so. */
export function scripted(name: string, decoupled = false): { model: FakeModel; taken: Taken[] } {
  const model = new FakeModel(fakeConfig({ name, type: 'TYPE_INT32', dims: [-1], decoupled }));
  const taken: Taken[] = [];
  model.infer = (request, on) => {
    taken.push({ request, on });
    onAbort(request.signal!, () => on.fail(asInferError(request.signal!.reason)));
  };
  return { model, taken };
}

const bytesOf = (values: readonly number[]) => new Uint8Array(Int32Array.from(values).buffer);
export const output = (...values: number[]): InferResponse => ({
  outputs: [{ name: 'OUTPUT0', datatype: 'INT32', shape: [values.length], data: bytesOf(values) }],
});

/** Answers once, with what it was given. */
export function answer({ request, on }: Taken): void {
  void on.response({ outputs: [{ ...request.inputs[0]!, name: 'OUTPUT0' }] });
  on.end();
}

export const asked = (id: string, data: readonly number[] = [1, 2], more: object = {}) => ({
  id,
  inputs: [{ name: 'INPUT0', shape: [data.length], datatype: 'INT32', data }],
  ...more,
});

export interface SocketServerOptions extends Partial<Omit<AppOptions, 'models'>> {
  server?: Partial<Pick<HttpServerOptions, 'maxConnections' | 'tls'>>;
}

/** The whole HTTP side on a socket. */
export async function socketServer(
  models: readonly FakeModel[],
  { server: ofServer = {}, ...options }: SocketServerOptions = {},
) {
  const { ledger = new MemoryLedger({ limit: 2 ** 28 }) } = options;
  const lines: Record<string, unknown>[] = [];
  const note = (fields: object) => void lines.push(fields as Record<string, unknown>);
  const log: ServerLog = { debug: note, info: note, warn: note, error: note };
  const toy = fakePlatform(models, { maxBodyBytes: MAX_BYTES, log, ...options, ledger });
  const { app, state } = toy;
  const server = await HttpServer.listen({
    app,
    state,
    maxMessageBytes: MAX_BYTES,
    host: '127.0.0.1',
    port: 0,
    ...ofServer,
  });
  const url = server.url.replace('http', 'ws');
  return { ...toy, server, url, ledger, lines };
}

/** What a server said instead of opening a socket. */
export interface Refusal {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/** A client that keeps what it is sent. */
export class SocketClient {
  readonly socket: WebSocket;
  readonly messages: unknown[] = [];
  readonly #closed: Promise<[number, Buffer]>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer, isBinary) =>
      this.messages.push(isBinary ? data : JSON.parse(data.toString())),
    );
    socket.on('error', () => {});
    this.#closed = once(socket, 'close') as Promise<[number, Buffer]>;
  }

  static async open(url: string, options: ClientOptions = {}): Promise<SocketClient> {
    const client = new SocketClient(new WebSocket(url, options));
    await once(client.socket, 'open');
    return client;
  }

  send(value: unknown): void {
    this.socket.send(
      typeof value === 'string' || value instanceof Uint8Array ? value : JSON.stringify(value),
    );
  }

  /** Status and reason of its end. */
  async closed(): Promise<[number, string]> {
    const [code, reason] = await this.#closed;
    return [code, reason.toString()];
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.#closed;
  }
}

/** The plain answer to a request for a socket. */
export async function refusal(url: string, options: ClientOptions = {}): Promise<Refusal> {
  const socket = new WebSocket(url, options);
  socket.on('error', () => {});
  const [, response] = await once(socket, 'unexpected-response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() };
}
