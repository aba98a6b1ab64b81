import type { Server, Socket } from 'node:net';
import type { MemoryLedger } from './held-memory.js';
import { CONNECTION_BYTES } from './memory-estimates.js';

/** 503 and not 429: there is no telling who asks. In a connection of HTTPS it is no more than a closed one. */
const REFUSAL =
  'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n';

/** Counts what open connections hold, and closes those that there is no memory for before they have said anything. */
export function holdConnections(server: Server, ledger: MemoryLedger): void {
  server.on('connection', (socket: Socket) => {
    const hold = ledger.open('connection');
    if (!hold.resize(CONNECTION_BYTES)) {
      socket.on('error', () => {});
      socket.end(REFUSAL, () => socket.destroy());
      return;
    }
    socket.once('close', () => hold.release());
  });
}
