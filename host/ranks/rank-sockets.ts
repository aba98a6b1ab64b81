import { hkdfSync } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { type GroupAddress, isShared } from '../../callbacks/group-address.js';
import { encodeFrame, FRAMES, type Frame, FrameReader } from './frames.js';

/** Both sides prove that they know the secret, and what they send is encrypted with keys that no later leak gives away. */
const PSK_OPTIONS = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', maxVersion: 'TLSv1.2' } as const;
const IDENTITY = 'skein-rank';
const KEEP_ALIVE_MS = 5000;
/** Milliseconds in which a connection must prove that it knows the secret, and say which rank it is. */
export const HANDSHAKE_LIMIT_MS = 5000;
const BEAT_MS = 1000;
/** Fewest beats that must be missing: the other side is waited for as long as its own limit says, and its clock is not this one. */
const FEWEST_BEATS = 3;
const NOTHING = new Uint8Array(0);

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'skein', 'key of a group of ranks', 32));
}

/** Options of a TLS server whose clients prove that they know the secret. */
export function serverKeys(secret: string): tls.TlsOptions {
  return {
    ...PSK_OPTIONS,
    pskIdentityHint: IDENTITY,
    pskCallback: (_, identity) => (identity === IDENTITY ? keyOf(secret) : null),
  };
}

/**
 * Connects to rank 0; resolves once the secret is proven, and rejects with ETIMEDOUT where no answer comes in
 * `limitMs`.
 */
export function connectToRanks(
  address: GroupAddress,
  secret: string | null,
  limitMs = HANDSHAKE_LIMIT_MS,
): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const place = isShared(address) ? { path: address.path } : address;
    const done = () => {
      clearTimeout(timer);
      socket.off('error', fail);
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
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    const late = () => {
      const error = new Error(`rank 0 does not answer within ${limitMs} ms`);
      socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    };
    const timer = setTimeout(late, limitMs);
    socket.once('error', fail);
  });
}

/** A connection to another rank, in frames. */
export class RankSocket {
  readonly #socket: net.Socket;
  #problem: string | null = null;
  /** Beats since something has come. */
  #silence = 0;

  /** @param onEnd is called once, with the reason, when nothing more comes */
  constructor(socket: net.Socket, onFrame: (frame: Frame) => void, onEnd: (reason: string) => void) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const reader = new FrameReader((frame) => {
      if (frame.kind !== FRAMES.beat) onFrame(frame);
    });
    socket.on('data', (chunk: Buffer) => {
      this.#silence = 0;
      try {
        reader.push(chunk);
      } catch (error) {
        this.#end((error as Error).message);
      }
    });
    socket.on('error', (error) => {
      this.#problem ??= `its connection failed (${error.message})`;
    });
    socket.once('close', () => onEnd(this.#problem ?? 'its connection was closed'));
  }

  /**
   * Sends beats, and ends the connection when nothing has come for `limitMs`: the system finds out much later, or never, where packets
   * are lost on the way. Beats are counted, since a process that was stopped has not read what came meanwhile.
   */
  watch(limitMs: number): void {
    const most = Math.max(FEWEST_BEATS, Math.ceil(limitMs / BEAT_MS));
    const timer = setInterval(() => {
      this.send({ kind: FRAMES.beat, numbers: [0, 0, 0], bytes: NOTHING });
      if (++this.#silence > most) this.#end(`nothing has come from it for ${most * BEAT_MS} ms`);
    }, BEAT_MS);
    this.#socket.once('close', () => clearInterval(timer));
  }

  send(frame: Frame): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(frame));
  }

  /** Sends what has not left yet, then closes. */
  end(): void {
    this.#socket.end();
    this.#socket.destroySoon();
  }

  #end(problem: string): void {
    this.#problem ??= problem;
    this.#socket.destroy();
  }
}
