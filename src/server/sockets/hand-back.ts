import type { IncomingMessage, Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** Headers of an offer that is declined. `http2-settings` goes with that of HTTP/2. */
const DECLINED = new Set(['upgrade', 'http2-settings']);

/**
 * Declines an upgrade: the request goes back to the server, as if it had come without that offer. Clients that would rather speak HTTP/2
 * send it along with ordinary requests, bodies too. From release 24.9 on Node.js asks before it takes such a request out of its own hands.
 */
export function handBack(server: Server, incoming: IncomingMessage, connection: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = incoming;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const lower = name.toLowerCase();
    if (DECLINED.has(lower)) continue;
    const value = lower === 'connection' ? withoutDeclined(rawHeaders[i + 1]!) : rawHeaders[i + 1]!;
    if (value !== '') text += `${name}: ${value}\r\n`;
  }
  // Node.js reads headers as latin1.
  connection.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]));
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', connection);
}

function withoutDeclined(value: string): string {
  const tokens = value.split(',').map((token) => token.trim());
  return tokens.filter((token) => token !== '' && !DECLINED.has(token.toLowerCase())).join(', ');
}
