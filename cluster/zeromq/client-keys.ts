import { z85 } from './curve.js';
import type { ReceivingSocket, SendingSocket, ZeroMq } from './zeromq.js';

/** Where a context asks who may connect (ZAP, RFC 27 of ZeroMQ). */
const ADDRESS = 'inproc://zeromq.zap.01';

/**
 * Lets only clients with these public keys connect to the sockets of a context that are CURVE servers. Has to be there before they
 * are bound. A context has one of it.
 *
 *   [version, request, domain, address, identity, mechanism, key of 32 bytes] -> [version, request, status, text, user, metadata]
 */
export class ClientKeys {
  readonly #socket: SendingSocket & ReceivingSocket;
  readonly #keys: ReadonlySet<string>;

  private constructor(socket: SendingSocket & ReceivingSocket, keys: ReadonlySet<string>) {
    this.#socket = socket;
    this.#keys = keys;
  }

  static async open(zmq: ZeroMq, context: unknown, keys: ReadonlySet<string>): Promise<ClientKeys> {
    const socket = new zmq.Reply({ context, linger: 0 });
    await socket.bind(ADDRESS);
    const clients = new ClientKeys(socket, keys);
    void clients.#answer();
    return clients;
  }

  close(): void {
    this.#socket.close();
  }

  async #answer(): Promise<void> {
    for await (const frames of { [Symbol.asyncIterator]: () => this.#socket[Symbol.asyncIterator]() }) {
      const [version = '', request = '', , , , mechanism, key] = frames;
      const isCurve = mechanism !== undefined && Buffer.from(mechanism).toString() === 'CURVE';
      const mayEnter = isCurve && key?.length === 32 && this.#keys.has(z85(key));
      const status = mayEnter ? ['200', 'OK'] : ['400', 'This key is not known here'];
      await this.#socket.send([version, request, ...status, '', '']);
    }
  }
}
