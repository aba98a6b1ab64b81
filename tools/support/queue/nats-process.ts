import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.js';

/** Path of nats-server; null: there is none. SKEIN_TEST_NATS names one that is not in the PATH. */
export function findNatsServer(): string | null {
  for (const path of [process.env.SKEIN_TEST_NATS, 'nats-server', '/usr/sbin/nats-server']) {
    if (path && spawnSync(path, ['--version']).status === 0) return path;
  }
  return null;
}

/** A nats-server with JetStream, on a port of its own, which can be killed and started again. */
export class NatsProcess {
  readonly port: number;
  readonly #program: string;
  readonly #arguments: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'skein-nats-'));
  #child: ChildProcess | null = null;

  private constructor(program: string, port: number, more: readonly string[]) {
    this.#program = program;
    this.port = port;
    this.#arguments = more;
  }

  /** @param more further arguments */
  static async start(program: string, more: readonly string[] = []): Promise<NatsProcess> {
    const nats = new NatsProcess(program, await freePort(), more);
    await nats.startAgain();
    return nats;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  async startAgain(): Promise<void> {
    const args = ['-js', '-sd', this.#folder, '-a', '127.0.0.1', '-p', String(this.port), ...this.#arguments];
    const child = spawn(this.#program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let said = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < 4000) said += text;
    });
    for (;;) {
      if (this.#child.exitCode !== null) throw new Error('nats-server ended at its start.');
      const socket = connect(this.port, '127.0.0.1');
      const isThere = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      if (isThere) return;
      if (child.exitCode !== null) throw new Error(`nats-server ended at its start: ${said}`);
      await sleep(20);
    }
  }

  /** @param keepsStore false: what was stored is lost too */
  async kill(keepsStore = true): Promise<void> {
    const child = this.#child;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    if (!keepsStore) rmSync(join(this.#folder, 'jetstream'), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A wire that can be made to swallow everything, in both directions, while its ends stay connected. */
export class SwallowingProxy {
  readonly port: number;
  isSwallowing = false;
  /** Ends all connections: a new one is as if nothing had been. */
  readonly cut: () => void;
  readonly #close: () => void;

  private constructor(port: number, cut: () => void, close: () => void) {
    this.port = port;
    this.cut = cut;
    this.#close = close;
  }

  static async start(targetPort: number): Promise<SwallowingProxy> {
    const sockets = new Set<{ destroy(): void }>();
    const cut = () => {
      for (const socket of sockets) socket.destroy();
    };
    const server = createServer((near) => {
      const far = connect(targetPort, '127.0.0.1');
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on('data', (bytes) => {
          if (!proxy.isSwallowing) to.write(bytes);
        });
        from.on('error', () => {});
        from.on('close', () => {
          sockets.delete(from);
          to.destroy();
        });
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const proxy: SwallowingProxy = new SwallowingProxy(port, cut, () => {
      server.close();
      cut();
    });
    return proxy;
  }

  close(): void {
    this.#close();
  }
}

/** A wire on which everything that its near end sends is seen, and may be changed. */
export class TappedProxy {
  readonly port: number;
  /** What is passed on in place of what has come; by default the same. */
  tap: (bytes: Buffer) => Buffer = (bytes) => bytes;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  static async start(targetPort: number): Promise<TappedProxy> {
    const sockets = new Set<{ destroy(): void }>();
    const server = createServer((near) => {
      const far = connect(targetPort, '127.0.0.1');
      near.on('data', (bytes: Buffer) => far.write(proxy.tap(bytes)));
      far.on('data', (bytes) => near.write(bytes));
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => other.destroy());
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const proxy: TappedProxy = new TappedProxy(port, () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return proxy;
  }

  close(): void {
    this.#close();
  }
}
