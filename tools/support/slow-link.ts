import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A port of this machine that leads to another one, as over a link with delay: what comes at either end
 * leaves the other one after a fixed number of milliseconds, in order.
 *
 *   rank 1 --> port == delayMs ==> target: rank 0
 *          <--      == delayMs ==
 */
export class SlowLink {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Bytes that have come in both directions. */
  bytes = 0;

  private constructor(target: number, delayMs: number) {
    this.#server = createServer({ noDelay: true }, (near) => {
      const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
      this.#carry(near, far, delayMs);
      this.#carry(far, near, delayMs);
    });
  }

  /** Opens a link to a port, which need not listen yet. */
  static async open(target: number, delayMs: number): Promise<SlowLink> {
    const link = new SlowLink(target, delayMs);
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Timers of the same length fire in the order in which they were set. */
  #carry(from: Socket, to: Socket, delayMs: number): void {
    const later = (send: () => void) => {
      if (delayMs === 0) send();
      else setTimeout(send, delayMs);
    };
    this.#sockets.add(from);
    from.on('data', (bytes) => {
      this.bytes += bytes.length;
      later(() => {
        if (!to.destroyed) to.write(bytes);
      });
    });
    from.on('end', () => later(() => to.end()));
    from.on('error', () => later(() => to.destroy()));
    from.on('close', () => {
      this.#sockets.delete(from);
      later(() => to.destroy());
    });
  }
}
