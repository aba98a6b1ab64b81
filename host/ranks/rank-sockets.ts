import { hkdfSync } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { encodeFrame, type Frame, FrameReader } from './frames.js';
import { type GroupAddress, isShared } from './group-address.js';

/** Both sides prove that they know the secret, and what they send is encrypted with keys that no later leak gives away. */
const PSK_OPTIONS = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', maxVersion: 'TLSv1.2' } as const;
const IDENTITY = 'skein-rank';
const KEEP_ALIVE_MS = 5000;

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'skein', 'key of a group of ranks', 32));
}

/** Listens where ranks meet. `onProblem`: a connection that did not get so far, for example with another secret. */
export function listenForRanks(
  address: GroupAddress,
  secret: string | null,
  events: { onConnection: (socket: net.Socket) => void; onProblem: (error: Error) => void },
): net.Server {
  const server =
    secret === null
      ? net.createServer(events.onConnection)
      : tls.createServer(
          {
            ...PSK_OPTIONS,
            pskIdentityHint: IDENTITY,
            pskCallback: (_, identity) => (identity === IDENTITY ? keyOf(secret) : null),
          },
          events.onConnection,
        );
  server.on('tlsClientError', events.onProblem);
  server.on('error', events.onProblem);
  if (isShared(address)) server.listen(address.path);
  else server.listen(address.port, address.host);
  return server;
}

/** Connects to rank 0; resolves once the secret is proven. */
export function connectToRanks(address: GroupAddress, secret: string | null): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const place = isShared(address) ? { path: address.path } : address;
    const done = () => {
      socket.off('error', reject);
      resolve(socket);
    };
    const socket =
      secret === null
        ? net.connect(place, done)
        : tls.connect(
            {
              ...place,
              ...PSK_OPTIONS,
              // The secret stands for a certificate.
              checkServerIdentity: () => undefined,
              pskCallback: () => ({ psk: keyOf(secret), identity: IDENTITY }),
            } as tls.ConnectionOptions,
            done,
          );
    socket.once('error', reject);
  });
}

/** A connection to another rank, in frames. */
export class RankSocket {
  readonly #socket: net.Socket;

  /** @param onEnd is called once, with the reason, when nothing more comes */
  constructor(socket: net.Socket, onFrame: (frame: Frame) => void, onEnd: (reason: string) => void) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    let problem: string | null = null;
    const reader = new FrameReader(onFrame);
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        problem = (error as Error).message;
        socket.destroy();
      }
    });
    socket.on('error', (error) => {
      problem ??= `its connection failed (${error.message})`;
    });
    socket.once('close', () => onEnd(problem ?? 'its connection was closed'));
  }

  send(frame: Frame): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(frame));
  }

  /** Sends what has not left yet, then closes. */
  end(): void {
    this.#socket.end();
    this.#socket.destroySoon();
  }
}
