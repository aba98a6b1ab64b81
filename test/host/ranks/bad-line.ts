import { once } from 'node:events';
import net from 'node:net';

/** What a line does with the bytes that it carries. */
export type LineMode = 'carry' | 'delay' | 'swallow' | 'spoil';

/**
 * A TCP connection's way through a network that a test makes bad: it stands between the clients that connect
 * to `port` and the target.
 */
export class BadLine {
  mode: LineMode = 'carry';
  /** Of `delay`. */
  delayMs = 5;
  /** Bytes that it has taken. */
  bytes = 0;
  readonly #server: net.Server;
  readonly #target: number;
  readonly #sockets = new Set<net.Socket>();

  private constructor(target: number) {
    this.#target = target;
    this.#server = net.createServer((socket) => this.#carry(socket));
  }

  static async open(target: number): Promise<BadLine> {
    const line = new BadLine(target);
    line.#server.listen(0, '127.0.0.1');
    await once(line.#server, 'listening');
    return line;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Breaks what is connected now. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #carry(near: net.Socket): void {
    const far = net.connect(this.#target, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk: Buffer) => this.#pass(chunk, to));
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        // A line that swallows passes on no end either.
        if (this.mode !== 'swallow') to.destroy();
      });
    }
  }

  #pass(chunk: Buffer, to: net.Socket): void {
    this.bytes += chunk.length;
    if (this.mode === 'swallow') return;
    if (this.mode === 'spoil') chunk[chunk.length - 1]! ^= 1;
    if (this.mode === 'delay') setTimeout(() => to.write(chunk), this.delayMs);
    else to.write(chunk);
  }
}
