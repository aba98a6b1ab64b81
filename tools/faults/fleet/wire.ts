import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Up: from who connects to who listens. */
export type Direction = 'up' | 'down';
export const DIRECTIONS: readonly Direction[] = ['up', 'down'];

/** What a lane keeps of bytes that have not gone on yet; then it reads no more, and the sender's own buffers fill. */
const MAX_KEPT_BYTES = 1 << 20;

interface Rule {
  /** Nothing passes, and the end of a connection is not reported. */
  isHeld: boolean;
  /** Milliseconds from the coming of bytes to their going on. */
  delayMs: number;
}

/**
 * The TCP connections of one program to some servers, by proxies in this process. They can be held, in both
 * directions or in one, slowed down and cut. What is held passes when it is released: TCP loses no bytes of a
 * connection that lives, however long its network is divided. New connections are held too: they are taken,
 * and nothing comes of them.
 */
export class Wire {
  /** Bytes that have gone on. */
  readonly bytes: Record<Direction, number> = { up: 0, down: 0 };
  readonly #rules: Record<Direction, Rule> = {
    up: { isHeld: false, delayMs: 0 },
    down: { isHeld: false, delayMs: 0 },
  };
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #lanes = new Set<Lane>();
  #targets: readonly number[] = [];
  #refuses = false;

  private constructor() {}

  /** @param targets ports of the loopback that it goes to; each has a port of the wire's own */
  static async open(targets: readonly number[]): Promise<Wire> {
    const wire = new Wire();
    wire.#targets = targets;
    for (const index of targets.keys()) {
      const server = createServer({ allowHalfOpen: true }, (near) => wire.#take(near, index));
      wire.#servers.push(server.listen(0, '127.0.0.1'));
      await once(server, 'listening');
    }
    return wire;
  }

  /** Ports to connect to, in the order of the targets. */
  get ports(): number[] {
    return this.#servers.map((server) => (server.address() as { port: number }).port);
  }

  /** Bytes that wait in this process. */
  get keptBytes(): number {
    return [...this.#lanes].reduce((sum, lane) => sum + lane.keptBytes, 0);
  }

  /** Where connections from now on go. */
  retarget(targets: readonly number[]): void {
    this.#targets = targets;
  }

  #take(near: Socket, index: number): void {
    if (this.#refuses) {
      near.destroy();
      return;
    }
    const far = connect({ port: this.#targets[index]!, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('close', () => this.#sockets.delete(socket));
    }
    this.#lane('up', near, far);
    this.#lane('down', far, near);
  }

  #lane(direction: Direction, from: Socket, to: Socket): void {
    const lane = new Lane(from, to, this.#rules[direction], {
      onBytes: (count) => {
        this.bytes[direction] += count;
      },
      onEnd: () => this.#lanes.delete(lane),
    });
    this.#lanes.add(lane);
  }

  /** Nothing passes in these directions until it is released. */
  hold(directions: readonly Direction[] = DIRECTIONS): void {
    for (const direction of directions) this.#rules[direction].isHeld = true;
  }

  /** All that comes passes later. */
  slow(delayMs: number): void {
    for (const direction of DIRECTIONS) this.#rules[direction].delayMs = delayMs;
  }

  /** Ends all connections, and each new one at once, until it is released. */
  cut(): void {
    this.#refuses = true;
    this.reset();
  }

  /** Ends all connections; new ones are as ever. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Everything is as at the beginning, and what was held passes. */
  release(): void {
    this.#refuses = false;
    for (const rule of Object.values(this.#rules)) Object.assign(rule, { isHeld: false, delayMs: 0 });
    for (const lane of this.#lanes) lane.pump();
  }

  close(): void {
    for (const server of this.#servers) server.close();
    this.reset();
  }
}

/** One direction of a connection. */
class Lane {
  readonly #to: Socket;
  readonly #from: Socket;
  readonly #rule: Readonly<Rule>;
  readonly #events: { onBytes: (count: number) => void; onEnd: () => void };
  readonly #kept: { bytes: Buffer; at: number }[] = [];
  #isEnding = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  keptBytes = 0;

  constructor(
    from: Socket,
    to: Socket,
    rule: Readonly<Rule>,
    events: { onBytes: (count: number) => void; onEnd: () => void },
  ) {
    this.#from = from;
    this.#to = to;
    this.#rule = rule;
    this.#events = events;
    from.on('data', (bytes) => this.#keep(bytes));
    from.on('error', () => {});
    from.on('end', () => {
      this.#isEnding = true;
      this.pump();
    });
    from.on('close', () => {
      this.#isClosed = true;
      this.pump();
    });
    to.on('drain', () => this.pump());
    to.on('close', () => {
      if (this.#timer !== null) clearTimeout(this.#timer);
      this.#events.onEnd();
    });
  }

  #keep(bytes: Buffer): void {
    this.#kept.push({ bytes, at: performance.now() + this.#rule.delayMs });
    this.keptBytes += bytes.length;
    this.pump();
    if (this.keptBytes > MAX_KEPT_BYTES) this.#from.pause();
  }

  /** Lets pass what may. */
  pump(): void {
    if (this.#rule.isHeld || this.#to.destroyed) return;
    for (;;) {
      const [next] = this.#kept;
      if (next === undefined) break;
      if (this.#to.writableNeedDrain) return;
      const waitMs = next.at - performance.now();
      if (waitMs > 0 && this.#rule.delayMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = null;
          this.pump();
        }, waitMs);
        return;
      }
      this.#kept.shift();
      this.keptBytes -= next.bytes.length;
      this.#events.onBytes(next.bytes.length);
      this.#to.write(next.bytes);
    }
    if (this.#from.isPaused()) this.#from.resume();
    if (this.#isClosed) this.#to.destroySoon();
    else if (this.#isEnding) this.#to.end();
  }
}
